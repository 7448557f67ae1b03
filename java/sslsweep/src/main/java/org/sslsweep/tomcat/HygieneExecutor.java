package org.sslsweep.tomcat;

import org.apache.catalina.LifecycleException;
import org.apache.catalina.LifecycleState;
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
public class HygieneExecutor extends StandardExecutorService implements Guarding {
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

    @Override
    ThreadPoolExecutor tasks() {
        ThreadPoolExecutor pool = executor;
        if (pool == null) {
            throw new IllegalStateException("executor " + getName() + " is not started");
        }
        return pool;
    }
}
