package org.sslsweep.tomcat;

/** Calls to public methods that some Tomcats do not have. */
final class Reflection {
    private Reflection() {}

    /** What the method answers; null also where there is none, or it throws. */
    static Object call(Object target, String method) {
        return invoke(target.getClass(), target, method);
    }

    /** What the static method answers; null also where there is none, or it throws, or the class is not there. */
    static Object callStatic(String type, String method) {
        try {
            return invoke(Class.forName(type, true, Reflection.class.getClassLoader()), null, method);
        } catch (ClassNotFoundException | LinkageError otherTomcat) {
            return null;
        }
    }

    /** What the method answers, or {@code otherwise}. */
    static int number(Object target, String method, int otherwise) {
        Object answer = call(target, method);
        return answer instanceof Number ? ((Number) answer).intValue() : otherwise;
    }

    /** Whether the object's class is the one of this name, or extends it. */
    static boolean isA(Object object, String name) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            if (type.getName().equals(name)) {
                return true;
            }
        }
        return false;
    }

    private static Object invoke(Class<?> type, Object target, String method) {
        try {
            return type.getMethod(method).invoke(target);
        } catch (ReflectiveOperationException | LinkageError otherTomcat) {
            return null;
        }
    }
}
