package org.sslsweep.tomcat;

import java.beans.PropertyChangeEvent;
import java.beans.PropertyChangeListener;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.catalina.Engine;
import org.apache.catalina.Lifecycle;
import org.apache.catalina.LifecycleEvent;
import org.apache.catalina.LifecycleListener;
import org.apache.catalina.LifecycleState;
import org.apache.catalina.Server;
import org.apache.catalina.Service;
import org.apache.catalina.Valve;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardServer;
import org.apache.catalina.core.StandardService;
import org.apache.juli.logging.Log;
import org.apache.juli.logging.LogFactory;
import org.sslsweep.TaskHooks;
import org.sslsweep.ThreadHygiene;

/**
 * Guards the tasks of each TLS connector: {@code <Listener className="org.sslsweep.tomcat.HygieneListener"/>} in
 * {@code <Server>}, and nothing else. It may as well be added to a Service, an Engine or a Connector, also by a program
 * that embeds Tomcat, before what it is added to is initialised.
 *
 * <p>Attributes: {@code policy} ({@code clear}, {@code observe}), {@code observeOnly}, {@code release}
 * ({@code default}, {@code every-task}, {@code thread-exit}, {@code park}, {@code never}), {@code label} (a text that
 * may hold {@code {name}}, {@code {protocol}} and {@code {port}}), {@code jmx}. Policy and release are the whole
 * process's.
 *
 * <p>Where the native library cannot be loaded, Tomcat starts as it would without the listener, and the log says why.
 */
public class HygieneListener implements LifecycleListener, PropertyChangeListener {
    private static final Log LOG = LogFactory.getLog(HygieneListener.class);

    // As written, until the first event: what a setter throws, Tomcat's parser turns into a line of the log.
    private String policy;
    private String observeOnly;
    private String release;
    private String label;
    private String jmx;

    /** Null for a connector whose hooks failed: it is left alone until it is destroyed. */
    private final Map<Connector, ConnectorHooks> hooks = new IdentityHashMap<>();
    private ListenerSettings settings;
    /** What it was added to: the one that it reports for. */
    private Lifecycle home;
    private boolean running;
    private boolean registered;

    /** What happens to leftovers: {@code clear} (they are recorded and cleared) or {@code observe} (they stay). */
    public void setPolicy(String policy) {
        this.policy = policy;
    }

    /** {@code true}: the same as the policy {@code observe}. */
    public void setObserveOnly(String observeOnly) {
        this.observeOnly = observeOnly;
    }

    /** As {@link #setObserveOnly(String)}. */
    public void setObserveOnly(boolean observeOnly) {
        this.observeOnly = Boolean.toString(observeOnly);
    }

    /**
     * When the state of a thread is given back to OpenSSL: {@code default}, {@code every-task}, {@code thread-exit},
     * {@code park} or {@code never}.
     */
    public void setRelease(String release) {
        this.release = release;
    }

    /** How labels begin; may hold {@code {name}}, {@code {protocol}} and {@code {port}}. */
    public void setLabel(String label) {
        this.label = label;
    }

    /** {@code false}: no MBean. */
    public void setJmx(String jmx) {
        this.jmx = jmx;
    }

    /** As {@link #setJmx(String)}. */
    public void setJmx(boolean jmx) {
        this.jmx = Boolean.toString(jmx);
    }

    /**
     * For Tomcat.
     *
     * @throws IllegalArgumentException for an attribute whose value is not allowed, at the first event: what it was
     *     added to does not start
     */
    @Override
    public synchronized void lifecycleEvent(LifecycleEvent event) {
        Lifecycle source = event.getLifecycle();
        String type = event.getType();
        boolean begins = type.equals(Lifecycle.BEFORE_INIT_EVENT) || type.equals(Lifecycle.BEFORE_START_EVENT);
        boolean first = begins && settings == null;
        if (first) {
            settings = new ListenerSettings(policy, observeOnly, release, label, jmx);
        }
        contained(source, () -> {
            if (home == null) {
                home = home(source);
            }
        });
        if (first) {
            contained(source, this::begin);
        }
        if (begins) {
            contained(source, () -> adopt(source));
        }
        if (source instanceof Connector) {
            containedFor((Connector) source, () -> connectorEvent((Connector) source, type));
            if (type.equals(Lifecycle.AFTER_DESTROY_EVENT)) {
                hooks.remove(source);
            }
        }
        if (source == home) {
            contained(source, () -> homeEvent(type));
        }
    }

    // ---- what fails in here is no reason for Tomcat not to run

    private void containedFor(Connector connector, Runnable action) {
        try {
            action.run();
        } catch (RuntimeException | LinkageError problem) {
            LOG.error("sslsweep: " + name(connector) + " is not guarded: " + problem + ". It goes on without; please"
                    + " report this with Tomcat's version", problem);
            ConnectorHooks failed = hooks.put(connector, null);
            if (failed != null) {
                contained(connector, failed::takeBack);
            }
        }
    }

    private static void contained(Object about, Runnable action) {
        try {
            action.run();
        } catch (RuntimeException | LinkageError problem) {
            LOG.error("sslsweep: what is in " + name(about) + " is not guarded, or not in all: " + problem
                    + ". It goes on without; please report this with Tomcat's version", problem);
        }
    }

    private static String name(Object object) {
        try {
            return object.toString();
        } catch (RuntimeException | LinkageError nameless) {
            return object.getClass().getName();
        }
    }

    /** The engine starts before the connectors of its service, whose hooks are to be told of. */
    private Lifecycle home(Lifecycle source) {
        Service service = source instanceof Engine ? ((Engine) source).getService() : null;
        if (service == null) {
            return source;
        }
        service.addLifecycleListener(this);
        return service;
    }

    private void begin() {
        if (!ThreadHygiene.isAvailable()) {
            LOG.warn("sslsweep: connectors run unguarded. " + ThreadHygiene.unavailableReason());
        } else {
            if (settings.policy != null) {
                ThreadHygiene.setPolicy(settings.policy);
            }
            if (settings.release != null) {
                ThreadHygiene.setRelease(settings.release);
            }
        }
    }

    // ---- finding connectors

    private void adopt(Object found) {
        if (!ThreadHygiene.isAvailable()) {
            return;
        }
        if (found instanceof Server) {
            adopt((Server) found);
        } else if (found instanceof Service) {
            adopt((Service) found);
        } else if (found instanceof Engine) {
            adopt(((Engine) found).getService());
        } else if (found instanceof Connector) {
            containedFor((Connector) found, () -> adopt((Connector) found));
        }
    }

    private void adopt(Server server) {
        if (server instanceof StandardServer) {
            // Tomcat keeps a list: removed first, it is there once.
            ((StandardServer) server).removePropertyChangeListener(this);
            ((StandardServer) server).addPropertyChangeListener(this);
        }
        for (Service service : server.findServices()) {
            adopt(service);
        }
    }

    private void adopt(Service service) {
        if (service instanceof StandardService) {
            ((StandardService) service).removePropertyChangeListener(this);
            ((StandardService) service).addPropertyChangeListener(this);
        }
        for (Connector connector : service.findConnectors()) {
            containedFor(connector, () -> adopt(connector));
        }
    }

    private void adopt(Connector connector) {
        if (!Arrays.asList(connector.findLifecycleListeners()).contains(this)) {
            connector.addLifecycleListener(this);
        }
        if (connector.getState().isAvailable() || connector.getState() == LifecycleState.INITIALIZED) {
            hookLate(connector);
        }
    }

    /** For Tomcat: a service or a connector was added or removed. */
    @Override
    public synchronized void propertyChange(PropertyChangeEvent event) {
        Object added = event.getNewValue();
        if (settings == null || !(added instanceof Service || added instanceof Connector)) {
            return;
        }
        contained(added, () -> adopt(added));
    }

    // ---- connectors

    private void connectorEvent(Connector connector, String type) {
        switch (type) {
            case Lifecycle.BEFORE_INIT_EVENT:
                hook(connector);
                break;
            case Lifecycle.AFTER_INIT_EVENT:
                with(connector, ConnectorHooks::afterInit);
                break;
            case Lifecycle.BEFORE_START_EVENT:
                hookLate(connector);
                with(connector, ConnectorHooks::beforeStart);
                break;
            case Lifecycle.AFTER_START_EVENT:
                with(connector, ConnectorHooks::afterStart);
                break;
            case Lifecycle.AFTER_STOP_EVENT:
                with(connector, ConnectorHooks::afterStop);
                break;
            case Lifecycle.AFTER_DESTROY_EVENT:
                with(connector, ConnectorHooks::afterDestroy);
                break;
            default:
                break;
        }
    }

    private void hook(Connector connector) {
        if (ThreadHygiene.isAvailable() && ConnectorHooks.applyTo(connector)) {
            ConnectorHooks made = new ConnectorHooks(connector, settings.labelPattern);
            hooks.put(connector, made);
            made.beforeInit();
            addValve(made, connector.getService());
        }
    }

    /** A connector that was initialised before it was heard of. */
    private void hookLate(Connector connector) {
        if (!hooks.containsKey(connector) && ThreadHygiene.isAvailable() && ConnectorHooks.applyTo(connector)) {
            ConnectorHooks made = new ConnectorHooks(connector, settings.labelPattern);
            hooks.put(connector, made);
            made.hookLate();
            addValve(made, connector.getService());
            if (running) {
                LOG.info("sslsweep guards " + made.report() + ", which was added while it ran");
                warn(made);
            }
        }
    }

    private void with(Connector connector, Consumer<ConnectorHooks> action) {
        ConnectorHooks found = hooks.get(connector);
        if (found != null) {
            action.accept(found);
        }
    }

    private static void addValve(ConnectorHooks made, Service service) {
        Engine engine = service == null ? null : service.getContainer();
        if (made.isApr() && engine != null) {
            contained(engine, () -> addValve(engine));
        }
    }

    private static void addValve(Engine engine) {
        for (Valve valve : engine.getPipeline().getValves()) {
            if (valve instanceof CheckpointValve) {
                return;
            }
        }
        engine.getPipeline().addValve(new CheckpointValve());
    }

    // ---- what it was added to

    private void homeEvent(String type) {
        switch (type) {
            case Lifecycle.AFTER_START_EVENT:
                started();
                break;
            case Lifecycle.AFTER_STOP_EVENT:
            case Lifecycle.AFTER_DESTROY_EVENT:
                stopped();
                break;
            default:
                break;
        }
    }

    private void started() {
        if (!ThreadHygiene.isAvailable()) {
            return;
        }
        running = true;
        register();
        String connectors = hooks.isEmpty() ? "no TLS connector, as there is none" : hooks.entrySet().stream()
                .map(entry -> entry.getValue() == null ? name(entry.getKey()) + " (not guarded)"
                        : entry.getValue().report())
                .sorted().collect(Collectors.joining(", "));
        LOG.info(TaskHooks.describe() + "; policy " + word(ThreadHygiene.policy()) + ", release "
                + word(ThreadHygiene.release()) + "; guards " + connectors);
        hooks.values().stream().filter(Objects::nonNull).forEach(HygieneListener::warn);
    }

    private static String word(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private static void warn(ConnectorHooks connector) {
        String warning = connector.warning();
        if (warning != null) {
            LOG.warn("sslsweep: " + warning);
        }
    }

    private void register() {
        if (!settings.jmx || registered) {
            return;
        }
        try {
            ThreadHygiene.registerMBean();
            registered = true;
        } catch (IllegalStateException taken) {
            LOG.warn("sslsweep: " + taken.getMessage());
        }
    }

    private void stopped() {
        running = false;
        if (registered) {
            registered = false;
            ThreadHygiene.unregisterMBean();
        }
    }
}
