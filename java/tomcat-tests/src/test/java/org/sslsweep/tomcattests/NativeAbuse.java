package org.sslsweep.tomcattests;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A program that calls each native that the classes of {@code org.apache.tomcat.jni} on its class path declare with all
 * that it must not be called with. Prints a line for each: its name, what comes of handles that are none, and what comes of
 * a right handle with other arguments that are wrong. Half of the calls are made by another thread than the one that has
 * made the handle.
 */
public final class NativeAbuse {
    private static final String PACKAGE = "org.apache.tomcat.jni.";
    private static final List<String> CLASSES = List.of("Buffer", "Library", "Pool", "SSL", "SSLConf", "SSLContext");
    /** Natives that begin and end the library: called on their own. */
    private static final Set<String> LIFE = Set.of("Library.terminate", "Library.initialize");
    private static final int TLS = 4 | 8 | 16 | 32;
    private static final int SERVER = 1;
    private static final int MOST_CALLS = 400;

    private final TreeMap<String, Method> natives = new TreeMap<>();
    private final ExecutorService other = Executors.newSingleThreadExecutor();
    private int calls;

    /** Handles of all kinds, anew for each call. */
    private record Handles(long pool, long context, long ssl, long network, long conf) {
        List<Long> all() {
            return List.of(pool, context, ssl, network, conf);
        }
    }

    private NativeAbuse() throws ReflectiveOperationException {
        for (String name : CLASSES) {
            Class<?> type;
            try {
                type = Class.forName(PACKAGE + name);
            } catch (ClassNotFoundException e) {
                continue;
            }
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isNative(method.getModifiers())) {
                    method.setAccessible(true);
                    natives.put(name + "." + method.getName(), method);
                }
            }
        }
    }

    /** {@code arguments[0]} is the library's path. */
    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        NativeAbuse abuse = new NativeAbuse();
        abuse.start();
        for (String name : abuse.natives.keySet()) {
            if (!LIFE.contains(name)) {
                System.out.println(name + "\t" + abuse.badHandles(name) + "\t" + abuse.badArguments(name));
            }
        }
        abuse.end();
        System.out.println("calls\t" + abuse.calls);
        System.exit(0);
    }

    private void start() throws Exception {
        if (natives.containsKey("Library.initialize")) {
            call("Library.initialize");
        }
        call("SSL.initialize", (Object) null);
    }

    /** The library ends with connections alive, and each native is called once more; then it begins again. */
    private void end() throws Exception {
        if (!natives.containsKey("Library.terminate")) {
            return;
        }
        Handles stale = handles();
        call("Library.terminate");
        Set<String> outcomes = new TreeSet<>();
        for (String name : natives.keySet()) {
            Class<?>[] types = natives.get(name).getParameterTypes();
            if (types.length > 0 && types[0] == long.class) {
                for (long handle : stale.all()) {
                    call(name, with(handle, neutral(types)));
                }
            }
        }
        start();
        Handles handles = handles();
        outcomes.add(outcome("SSL.isInInit", call("SSL.isInInit", handles.ssl)));
        free(handles);
        System.out.println("after terminate\t" + outcomes + "\t-");
    }

    private Handles handles() throws Exception {
        if (!natives.containsKey("SSLContext.make")) {
            return new Handles(0, 0, 0, 0, 0);
        }
        long pool = natives.containsKey("Pool.create") ? (long) call("Pool.create", 0L) : 0;
        Class<?>[] make = natives.get("SSLContext.make").getParameterTypes();
        long context = (long) (make.length == 3
                ? call("SSLContext.make", pool, TLS, SERVER)
                : call("SSLContext.make", TLS, SERVER));
        long ssl = (long) call("SSL.newSSL", context, true);
        long network = (long) call("SSL.makeNetworkBIO", ssl);
        Class<?>[] conf = natives.get("SSLConf.make").getParameterTypes();
        long made = (long) (conf.length == 2
                ? call("SSLConf.make", pool, 0x2 | 0x8 | 0x20)
                : call("SSLConf.make", 0x2 | 0x8 | 0x20));
        return new Handles(pool, context, ssl, network, made);
    }

    private void free(Handles handles) throws Exception {
        if (handles.ssl != 0) {
            call("SSL.freeBIO", handles.network);
            call("SSL.freeSSL", handles.ssl);
            call("SSLConf.free", handles.conf);
            call("SSLContext.free", handles.context);
        }
        if (handles.pool != 0) {
            call("Pool.destroy", handles.pool);
        }
    }

    /** The handle that a native wants first; 0 where it wants none. */
    private static long right(String name, Handles handles) {
        if (name.startsWith("Pool.") || name.endsWith(".make")) {
            return handles.pool;
        }
        if (name.startsWith("SSLContext.") || name.equals("SSL.newSSL")) {
            return handles.context;
        }
        if (name.startsWith("SSLConf.")) {
            return handles.conf;
        }
        return name.endsWith("BIO") && !name.equals("SSL.makeNetworkBIO") || name.endsWith("InBIO") ? handles.network
                : handles.ssl;
    }

    private String badHandles(String name) throws Exception {
        Class<?>[] types = natives.get(name).getParameterTypes();
        if (types.length == 0 || types[0] != long.class || name.equals("SSL.getErrorString")) {
            return "-";
        }
        Set<String> outcomes = new TreeSet<>();
        Handles stale = handles();
        free(stale);
        Handles live = handles();
        List<Long> bad = new ArrayList<>(List.of(0L, -1L, 1L, Long.MIN_VALUE, Long.MAX_VALUE, 0x5DEECE66DL, 0x7f0012345678L));
        bad.addAll(stale.all());
        long right = right(name, live);
        live.all().stream().filter(handle -> handle != right).forEach(bad::add);
        for (long handle : bad) {
            for (Object[] arguments : combinations(types, true)) {
                outcomes.add(outcome(name, call(name, with(handle, arguments))));
            }
        }
        free(live);
        return outcomes.toString();
    }

    private String badArguments(String name) throws Exception {
        Class<?>[] types = natives.get(name).getParameterTypes();
        if (types.length == 0) {
            return outcome(name, call(name));
        }
        boolean handle = types[0] == long.class && !name.equals("SSL.getErrorString");
        Set<String> outcomes = new TreeSet<>();
        for (Object[] arguments : combinations(types, handle)) {
            Handles handles = handles();
            outcomes.add(outcome(name, call(name, handle ? with(right(name, handles), arguments) : arguments)));
            free(handles);
        }
        return outcomes.toString();
    }

    private static Object[] with(long handle, Object[] arguments) {
        Object[] all = arguments.clone();
        all[0] = handle;
        return all;
    }

    private static Object[] neutral(Class<?>[] types) {
        Object[] arguments = new Object[types.length];
        for (int place = 0; place < types.length; place++) {
            arguments[place] = types[place].isPrimitive() ? Array.get(Array.newInstance(types[place], 1), 0) : null;
        }
        return arguments;
    }

    /** All combinations of wrong values; the first argument is left alone where it is a handle. */
    private static List<Object[]> combinations(Class<?>[] types, boolean handle) {
        List<Object[]> all = new ArrayList<>();
        all.add(neutral(types));
        for (int place = handle ? 1 : 0; place < types.length; place++) {
            List<Object[]> more = new ArrayList<>();
            for (Object[] arguments : all) {
                for (Object value : values(types[place])) {
                    Object[] changed = arguments.clone();
                    changed[place] = value;
                    more.add(changed);
                }
            }
            all = more.size() <= MOST_CALLS ? more : more.subList(0, MOST_CALLS);
        }
        return all;
    }

    /** What is wrong wherever a native takes such a thing. Behind an address that is not 0 there would have to be memory. */
    private static List<Object> values(Class<?> type) {
        List<Object> values = new ArrayList<>();
        if (type == long.class) {
            values.addAll(List.of(0L, Long.MIN_VALUE, -1L));
        } else if (type == int.class) {
            values.addAll(List.of(0, -1, 1, Integer.MAX_VALUE, Integer.MIN_VALUE, 1 << 20));
        } else if (type == boolean.class) {
            values.addAll(List.of(false, true));
        } else if (type == String.class) {
            values.add(null);
            values.addAll(List.of("", "/does/not/exist", "a\0b", "\ud800", "x".repeat(70_000)));
        } else if (type == byte[].class) {
            values.add(null);
            values.addAll(List.of(new byte[0], new byte[] {1}, new byte[70_000]));
        } else if (type == String[].class) {
            values.add(null);
            values.addAll(List.of(new String[0], new String[] {null}, new String[] {"", "x".repeat(300)}));
        } else if (type == ByteBuffer.class) {
            values.add(null);
            values.addAll(List.of(ByteBuffer.allocate(1), ByteBuffer.allocateDirect(0)));
        } else {
            values.add(null);
        }
        return values;
    }

    /** What a call gives; the exception that it throws, if any. */
    private Object call(String name, Object... arguments) throws Exception {
        Method method = natives.get(name);
        calls++;
        if (calls % 2 == 0) {
            return invoke(method, arguments);
        }
        try {
            return other.submit(() -> invoke(method, arguments)).get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(name, e);
        }
    }

    private static Object invoke(Method method, Object[] arguments) throws IllegalAccessException {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException e) {
            return e.getCause();
        }
    }

    /** Failures by name; of what succeeds, or is a number like any other, no more than that. */
    private String outcome(String name, Object result) {
        if (result instanceof Exception || result instanceof Error) {
            return result.getClass().getSimpleName();
        }
        if (result == null) {
            return natives.get(name).getReturnType() == void.class ? "void" : "null";
        }
        if (result instanceof Boolean) {
            return result.toString();
        }
        if (result instanceof Number number) {
            long value = number.longValue();
            return value == 0 || value == -1 ? String.valueOf(value) : "number";
        }
        return "value";
    }
}
