package org.sslsweep;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the JSON that the natives write: strictly RFC 8259, nothing more.
 *
 * <p>Objects become maps in their order, arrays lists, integers Long (BigInteger beyond), other numbers Double.
 */
final class Json {
    /** Deeper texts are refused, before the stack ends. */
    private static final int DEEPEST = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a whole text. Throws IllegalArgumentException where it is no JSON. */
    static Object parse(String text) {
        Json json = new Json(text);
        json.skipSpace();
        Object value = json.value(0);
        json.skipSpace();
        if (json.at != text.length()) {
            throw json.error("the text goes on after its value");
        }
        return value;
    }

    private Object value(int depth) {
        if (depth > DEEPEST) {
            throw error("nested too deep");
        }
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (accept('}')) {
            return map;
        }
        do {
            skipSpace();
            int start = at;
            String name = string();
            skipSpace();
            expect(':');
            skipSpace();
            Object value = value(depth + 1);
            if (map.containsKey(name)) {
                at = start;
                throw error("a name that was there before");
            }
            map.put(name, value);
            skipSpace();
        } while (accept(','));
        expect('}');
        return map;
    }

    private List<Object> array(int depth) {
        List<Object> list = new ArrayList<>();
        at++;
        skipSpace();
        if (accept(']')) {
            return list;
        }
        do {
            skipSpace();
            list.add(value(depth + 1));
            skipSpace();
        } while (accept(','));
        expect(']');
        return list;
    }

    private String string() {
        expect('"');
        StringBuilder string = new StringBuilder();
        while (true) {
            char next = next();
            if (next == '"') {
                return string.toString();
            }
            if (next < ' ') {
                at--;
                throw error("a control character in a string");
            }
            string.append(next == '\\' ? escaped() : next);
        }
    }

    private char escaped() {
        char kind = next();
        switch (kind) {
            case '"':
            case '\\':
            case '/':
                return kind;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int code = 0;
                for (int digit = 0; digit < 4; digit++) {
                    char hex = next();
                    // Character.digit takes digits of all scripts.
                    int value = hex < 128 ? Character.digit(hex, 16) : -1;
                    if (value < 0) {
                        at--;
                        throw error("no hexadecimal digit");
                    }
                    code = code << 4 | value;
                }
                return (char) code;
            default:
                at--;
                throw error("no escape");
        }
    }

    private Number number() {
        int start = at;
        accept('-');
        if (!accept('0')) {
            digits();
        }
        boolean whole = true;
        if (accept('.')) {
            whole = false;
            digits();
        }
        if (accept('e') || accept('E')) {
            whole = false;
            if (!accept('+')) {
                accept('-');
            }
            digits();
        }
        String number = text.substring(start, at);
        if (!whole) {
            return Double.valueOf(number);
        }
        // 18 digits are always a long.
        return number.length() <= 18 ? (Number) Long.valueOf(number) : exact(new BigInteger(number));
    }

    private static Number exact(BigInteger number) {
        return number.bitLength() < Long.SIZE ? (Number) number.longValue() : number;
    }

    private void digits() {
        int start = at;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        if (at == start) {
            throw error("no value");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw error("no value");
        }
        at += word.length();
        return value;
    }

    private void skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        if (at >= text.length()) {
            throw error("the text ends too early");
        }
        return text.charAt(at);
    }

    private char next() {
        char next = peek();
        at++;
        return next;
    }

    private boolean accept(char expected) {
        boolean there = at < text.length() && text.charAt(at) == expected;
        if (there) {
            at++;
        }
        return there;
    }

    private void expect(char expected) {
        if (peek() != expected) {
            throw error("'" + expected + "' is missing");
        }
        at++;
    }

    private IllegalArgumentException error(String what) {
        return new IllegalArgumentException("no JSON, at character " + at + ": " + what);
    }
}
