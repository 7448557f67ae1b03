package org.sslsweep.tomcat;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.catalina.core.StandardThreadExecutor;

/**
 * A {@link StandardThreadExecutor} that is an ExecutorService: Tomcat 9 makes none of it, though NIO2 works on nothing
 * else; later ones do. Cannot be shut down from outside.
 */
abstract class StandardExecutorService extends StandardThreadExecutor implements ExecutorService {
    /**
     * Who runs the tasks.
     *
     * @throws IllegalStateException when it is not started
     */
    abstract ExecutorService tasks();

    /** Does nothing: it stops with its service. */
    @Override
    public void shutdown() {}

    /** Does nothing: it stops with its service. */
    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    /** Does nothing: it stops with its service. */
    public void close() {}

    @Override
    public boolean isShutdown() {
        return tasks().isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return tasks().isTerminated();
    }

    /** Does not wait: it stops with its service. */
    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return false;
    }

    @Override
    public <T> Future<T> submit(Callable<T> task) {
        return tasks().submit(task);
    }

    @Override
    public <T> Future<T> submit(Runnable task, T result) {
        return tasks().submit(task, result);
    }

    @Override
    public Future<?> submit(Runnable task) {
        return tasks().submit(task);
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks) throws InterruptedException {
        return tasks().invokeAll(tasks);
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException {
        return tasks().invokeAll(tasks, timeout, unit);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks) throws InterruptedException, ExecutionException {
        return tasks().invokeAny(tasks);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        return tasks().invokeAny(tasks, timeout, unit);
    }
}
