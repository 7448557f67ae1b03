package org.sslsweep.tomcat;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import org.apache.coyote.InputBuffer;
import org.apache.coyote.OutputBuffer;
import org.apache.coyote.ProtocolHandler;
import org.apache.coyote.Request;
import org.apache.coyote.Response;
import org.apache.coyote.http11.Http11InputBuffer;
import org.apache.tomcat.util.net.ApplicationBufferHandler;
import org.sslsweep.TaskHooks;

/**
 * Checkpoints where a servlet on the APR connector reads or writes: the natives behind it empty the error queue before
 * they do. Elsewhere the guarded TLS engine sees to that.
 */
final class AprCheckpoints {
    /** Tomcat 9 has it; null elsewhere. */
    private static final Class<?> APR = apr();
    private static final VarHandle OUTPUT = output();

    private AprCheckpoints() {}

    /** Whether a connector is one of APR. */
    static boolean areFor(ProtocolHandler handler) {
        return APR != null && APR.isInstance(handler);
    }

    /**
     * Puts them between a request and its connector. Tomcat uses the two objects for many requests, one after the
     * other: they are put there once.
     *
     * @param label for errors on threads without a task
     */
    static void put(Request request, int label) {
        if (request.getInputBuffer() instanceof Input) {
            recorded(request, false);
            return;
        }
        Response response = request.getResponse();
        Output output = null;
        if (OUTPUT != null && response != null) {
            output = new Output((OutputBuffer) OUTPUT.get(response), label);
            response.setOutputBuffer(output);
        }
        request.setInputBuffer(new Input(request, output, label));
    }

    private static Class<?> apr() {
        try {
            return Class.forName("org.apache.coyote.http11.Http11AprProtocol", false,
                    ProtocolHandler.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError otherTomcat) {
            return null;
        }
    }

    /**
     * Tells whether nothing of the application runs between the checkpoint just made and what is written next: then that
     * needs no checkpoint of its own.
     */
    static void recorded(Request request, boolean recorded) {
        InputBuffer input = request.getInputBuffer();
        if (input instanceof Input && ((Input) input).output != null) {
            ((Input) input).output.recorded = recorded;
        }
    }

    /** Whether the connector has bytes from the socket that it has not yet handed on. */
    private static boolean isInMemory(InputBuffer input) {
        return input instanceof Http11InputBuffer && ((Http11InputBuffer) input).getByteBuffer().hasRemaining();
    }

    private static VarHandle output() {
        try {
            // It has a setter and no getter.
            return MethodHandles.privateLookupIn(Response.class, MethodHandles.lookup())
                    .findVarHandle(Response.class, "outputBuffer", OutputBuffer.class);
        } catch (ReflectiveOperationException | RuntimeException otherTomcat) {
            return null;
        }
    }

    private static final class Input implements InputBuffer {
        private final Request request;
        private final InputBuffer input;
        /** The same request's; null where it cannot be reached. */
        private final Output output;
        private final int label;

        Input(Request request, Output output, int label) {
            this.request = request;
            this.input = request.getInputBuffer();
            this.output = output;
            this.label = label;
        }

        @Override
        public int doRead(ApplicationBufferHandler handler) throws IOException {
            if (readsSocket()) {
                TaskHooks.checkpoint(label);
            }
            return input.doRead(handler);
        }

        /** False only where no native can follow: the next checkpoint finds what was left just as well. */
        private boolean readsSocket() {
            long length = request.getContentLengthLong();
            // In chunks: whether the end is in memory shows only when it is read.
            return length < 0 || request.getBytesRead() < length && !isInMemory(input);
        }

        @Override
        public int available() {
            TaskHooks.checkpoint(label);
            return input.available();
        }
    }

    private static final class Output implements OutputBuffer {
        private final OutputBuffer output;
        private final int label;
        /** Nothing has run since the last checkpoint. */
        private boolean recorded;

        Output(OutputBuffer output, int label) {
            this.output = output;
            this.label = label;
        }

        @Override
        public int doWrite(ByteBuffer chunk) throws IOException {
            if (recorded) {
                recorded = false;
            } else {
                TaskHooks.checkpoint(label);
            }
            return output.doWrite(chunk);
        }

        @Override
        public long getBytesWritten() {
            return output.getBytesWritten();
        }
    }
}
