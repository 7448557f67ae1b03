package org.sslsweep.testserver;

import javax.websocket.server.ServerEndpointConfig;

/** Gives endpoints the application's thread of the Tomcat that was started last. */
public class ApplicationConfigurator extends ServerEndpointConfig.Configurator {
    private static volatile ApplicationThread application;

    static void use(ApplicationThread current) {
        application = current;
    }

    @Override
    public <T> T getEndpointInstance(Class<T> type) {
        return type.cast(new EchoEndpoint(application));
    }
}
