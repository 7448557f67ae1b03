package org.sslsweep.example;

import io.micrometer.core.instrument.binder.MeterBinder;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.sslsweep.micrometer.HygieneMetrics;
import org.sslsweep.tomcat.HygieneListener;

/**
 * A Spring Boot server whose worker threads are swept after each task, and whose figures are at
 * {@code /actuator/prometheus}. Two beans do it.
 *
 * <p>Needs Debian's {@code libtcnative-1}; {@code application.properties} says the rest. Run it from the root of
 * the repository with {@code make spring-boot-example}, then {@code curl -k https://localhost:8443/actuator/prometheus}.
 */
@SpringBootApplication
@RestController
public class Application {
    /** Starts the server. */
    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    /** Hooks the sweeps into each TLS connector. */
    @Bean
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> hygiene() {
        return factory -> factory.addConnectorCustomizers(
                connector -> connector.addLifecycleListener(new HygieneListener()));
    }

    /** Shows what they found. */
    @Bean
    MeterBinder hygieneMetrics() {
        return new HygieneMetrics();
    }

    /** Answers how many bytes came. */
    @PutMapping("/put")
    int put(@RequestBody byte[] body) {
        return body.length;
    }
}
