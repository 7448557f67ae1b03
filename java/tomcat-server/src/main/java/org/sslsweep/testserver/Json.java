package org.sslsweep.testserver;

/** Writes JSON texts. */
final class Json {
    private Json() {}

    static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
