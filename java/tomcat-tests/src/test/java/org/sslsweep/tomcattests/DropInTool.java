package org.sslsweep.tomcattests;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs a command of the system: curl, openssl. */
final class DropInTool {
    private DropInTool() {}

    /** Answers all that it wrote, standard error included; throws where it failed. */
    static String run(String input, List<String> command) throws IOException, InterruptedException {
        Result result = attempt(input, command);
        if (result.code() != 0) {
            throw new IOException(command + " ended with exit code " + result.code() + ":\n" + result.output());
        }
        return result.output();
    }

    record Result(int code, String output) {}

    static Result attempt(String input, List<String> command) throws IOException, InterruptedException {
        Path stdin = Files.createTempFile("sslsweep-tool", ".in");
        Path output = Files.createTempFile("sslsweep-tool", ".out");
        try {
            Files.writeString(stdin, input);
            Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectInput(stdin.toFile())
                    .redirectOutput(output.toFile()).start();
            if (!process.waitFor(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IOException(command + " does not end:\n" + Files.readString(output, StandardCharsets.ISO_8859_1));
            }
            return new Result(process.exitValue(), Files.readString(output, StandardCharsets.ISO_8859_1));
        } finally {
            Files.delete(stdin);
            Files.delete(output);
        }
    }
}
