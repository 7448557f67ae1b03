package org.sslsweep;

import java.util.concurrent.Callable;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Hands tasks on, each with a guard; those that are repeated get one each time. */
final class GuardedScheduledExecutorService extends GuardedExecutorService implements ScheduledExecutorService {
    private final ScheduledExecutorService executor;

    GuardedScheduledExecutorService(TaskLabel label, ScheduledExecutorService executor) {
        super(label, executor);
        this.executor = executor;
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
        return executor.schedule(guarded(task), delay, unit);
    }

    @Override
    public <T> ScheduledFuture<T> schedule(Callable<T> task, long delay, TimeUnit unit) {
        return executor.schedule(guarded(task), delay, unit);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, long first, long period, TimeUnit unit) {
        return executor.scheduleAtFixedRate(guarded(task), first, period, unit);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, long first, long delay, TimeUnit unit) {
        return executor.scheduleWithFixedDelay(guarded(task), first, delay, unit);
    }
}
