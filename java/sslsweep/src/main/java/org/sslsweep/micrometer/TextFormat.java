package org.sslsweep.micrometer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads Prometheus' text format, as {@code ThreadHygiene.prometheus()} writes it: counters and gauges. */
final class TextFormat {
    /** One line with a figure. */
    static final class Sample {
        final String name;
        final Map<String, String> labels;
        final double value;
        final boolean counter;
        final String help;

        Sample(String name, Map<String, String> labels, double value, boolean counter, String help) {
            this.name = name;
            this.labels = labels;
            this.value = value;
            this.counter = counter;
            this.help = help;
        }
    }

    private final Map<String, String> types = new HashMap<>();
    private final Map<String, String> helps = new HashMap<>();
    private String line = "";
    private int at;

    private TextFormat() {}

    /** All samples, in their order. Throws IllegalArgumentException where a line is none. */
    static List<Sample> parse(String text) {
        TextFormat format = new TextFormat();
        List<Sample> samples = new ArrayList<>();
        for (String line : text.split("\n")) {
            if (line.startsWith("#")) {
                format.comment(line);
            } else if (!line.isEmpty()) {
                samples.add(format.sample(line));
            }
        }
        return samples;
    }

    private void comment(String line) {
        String[] words = line.split(" ", 4);
        if (words.length == 4 && words[1].equals("TYPE")) {
            types.put(words[2], words[3]);
        } else if (words.length == 4 && words[1].equals("HELP")) {
            helps.put(words[2], words[3].replace("\\n", "\n").replace("\\\\", "\\"));
        }
    }

    private Sample sample(String text) {
        line = text;
        at = 0;
        String name = upTo("{ ");
        Map<String, String> labels = new LinkedHashMap<>();
        if (peek() == '{') {
            at++;
            while (peek() != '}') {
                String label = upTo("=");
                expect('=');
                labels.put(label, quoted());
                if (peek() == ',') {
                    at++;
                }
            }
            at++;
        }
        expect(' ');
        try {
            double value = Double.parseDouble(line.substring(at));
            return new Sample(name, labels, value, "counter".equals(types.get(name)), helps.getOrDefault(name, ""));
        } catch (NumberFormatException problem) {
            throw error();
        }
    }

    private String upTo(String ends) {
        int start = at;
        while (ends.indexOf(peek()) < 0) {
            at++;
        }
        if (at == start) {
            throw error();
        }
        return line.substring(start, at);
    }

    private String quoted() {
        expect('"');
        StringBuilder value = new StringBuilder();
        while (peek() != '"') {
            char next = line.charAt(at++);
            if (next == '\\') {
                next = peek() == 'n' ? '\n' : peek();
                at++;
            }
            value.append(next);
        }
        at++;
        return value.toString();
    }

    private char peek() {
        if (at >= line.length()) {
            throw error();
        }
        return line.charAt(at);
    }

    private void expect(char expected) {
        if (peek() != expected) {
            throw error();
        }
        at++;
    }

    private IllegalArgumentException error() {
        return new IllegalArgumentException("no line of Prometheus' text format, at character " + at + ": " + line);
    }
}
