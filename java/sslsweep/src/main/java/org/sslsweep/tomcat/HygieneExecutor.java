package org.sslsweep.tomcat;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.LifecycleState;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.juli.logging.Log;
import org.apache.juli.logging.LogFactory;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.sslsweep.ThreadHygiene;

/**
 * Tomcat's {@code <Executor>} with each task guarded: {@code <Executor
 * className="org.sslsweep.tomcat.HygieneExecutor" name="..." />}. Takes the attributes of Tomcat's own, and
 * {@code label}.
 *
 * <p>Without the native library it is Tomcat's own, and says so when it starts.
 */
public class HygieneExecutor extends StandardThreadExecutor implements ExecutorService, Guarding {
    private static final Log LOG = LogFactory.getLog(HygieneExecutor.class);

    private String label;

    /** How the labels of its tasks begin; the executor's name, where it is not set. */
    public String getLabel() {
        return label;
    }

    /** Sets how the labels of its tasks begin, from the next start on. */
    public void setLabel(String label) {
        this.label = label;
    }

    @Override
    protected void startInternal() throws LifecycleException {
        if (!ThreadHygiene.isAvailable()) {
            LOG.warn("sslsweep: the tasks of executor " + getName() + " are not guarded: "
                    + ThreadHygiene.unavailableReason());
            super.startInternal();
            return;
        }
        String base = label == null || label.isBlank() ? getName() : label;
        WorkerHooks hooks = new WorkerHooks(new ConnectorLabels(base), Phase.TASK);
        executor = WorkerPool.start(hooks, getMinSpareThreads(), getMaxThreads(), getMaxIdleTime(),
                new TaskQueue(getMaxQueueSize()),
                new TaskThreadFactory(getNamePrefix(), isDaemon(), getThreadPriority()));
        executor.setThreadRenewalDelay(getThreadRenewalDelay());
        setState(LifecycleState.STARTING);
    }

    // Tomcat 9 makes no ExecutorService of its executors, though NIO2 works on nothing else; later ones do.

    ThreadPoolExecutor started() {
        ThreadPoolExecutor pool = executor;
        if (pool == null) {
            throw new IllegalStateException("executor " + getName() + " is not started");
        }
        return pool;
    }

    /** Does nothing: the executor stops with its service. */
    @Override
    public void shutdown() {}

    /** Does nothing: the executor stops with its service. */
    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    /** Does nothing: the executor stops with its service. */
    public void close() {}

    @Override
    public boolean isShutdown() {
        return started().isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return started().isTerminated();
    }

    /** Does not wait: the executor stops with its service. */
    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return false;
    }

    @Override
    public <T> Future<T> submit(Callable<T> task) {
        return started().submit(task);
    }

    @Override
    public <T> Future<T> submit(Runnable task, T result) {
        return started().submit(task, result);
    }

    @Override
    public Future<?> submit(Runnable task) {
        return started().submit(task);
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks) throws InterruptedException {
        return started().invokeAll(tasks);
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException {
        return started().invokeAll(tasks, timeout, unit);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks) throws InterruptedException, ExecutionException {
        return started().invokeAny(tasks);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        return started().invokeAny(tasks, timeout, unit);
    }
}
