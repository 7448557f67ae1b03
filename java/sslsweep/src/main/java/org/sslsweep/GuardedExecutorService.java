package org.sslsweep;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Hands tasks on, each with a guard. */
class GuardedExecutorService extends GuardedExecutor implements ExecutorService {
    private final ExecutorService executor;

    GuardedExecutorService(TaskLabel label, ExecutorService executor) {
        super(label, executor);
        this.executor = executor;
    }

    @Override
    public <T> Future<T> submit(Callable<T> task) {
        return executor.submit(guarded(task));
    }

    @Override
    public <T> Future<T> submit(Runnable task, T result) {
        return executor.submit(guarded(task), result);
    }

    @Override
    public Future<?> submit(Runnable task) {
        return executor.submit(guarded(task));
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks) throws InterruptedException {
        return executor.invokeAll(guarded(tasks));
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException {
        return executor.invokeAll(guarded(tasks), timeout, unit);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks) throws InterruptedException, ExecutionException {
        return executor.invokeAny(guarded(tasks));
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        return executor.invokeAny(guarded(tasks), timeout, unit);
    }

    @Override
    public void shutdown() {
        executor.shutdown();
    }

    /** The tasks that have not begun, with their guards. */
    @Override
    public List<Runnable> shutdownNow() {
        return executor.shutdownNow();
    }

    @Override
    public boolean isShutdown() {
        return executor.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return executor.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        return executor.awaitTermination(timeout, unit);
    }

    final Runnable guarded(Runnable task) {
        return new GuardedRunnable(label, task);
    }

    final <T> Callable<T> guarded(Callable<T> task) {
        return new GuardedCallable<>(label, task);
    }

    private <T> List<Callable<T>> guarded(Collection<? extends Callable<T>> tasks) {
        List<Callable<T>> guarded = new ArrayList<>(tasks.size());
        for (Callable<T> task : tasks) {
            guarded.add(guarded(task));
        }
        return guarded;
    }
}
