import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.FileReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces orders in Avro, each preceded by the id of its schema, as the registry's
 * serializers do: AvroOrders PROPERTIES REGISTRY-URL TOKEN TOPIC COUNT.
 */
public final class AvroOrders {
    private AvroOrders() {}

    public static void main(String[] args) throws Exception {
        Properties login = new Properties();
        try (FileReader reader = new FileReader(args[0])) {
            login.load(reader);
        }
        Schema schema = new Schema.Parser().parse("""
                {"type": "record", "name": "Order", "namespace": "shop", "fields": [
                  {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}]}""");
        try (KafkaProducer<String, GenericRecord> producer = new KafkaProducer<>(login, new StringSerializer(), new RegisteredAvro(args[1], args[2]))) {
            for (long i = 0; i < Integer.parseInt(args[4]); i++) {
                GenericRecord order = new GenericData.Record(schema);
                order.put("id", i);
                order.put("customer", "customer-" + i % 7);
                producer.send(new ProducerRecord<>(args[3], "customer-" + i % 7, order)).get();
            }
        }
        System.out.println("end");
    }

    /** Registers the schemas of values under TOPIC-value and writes their ids before the values. */
    static final class RegisteredAvro implements Serializer<GenericRecord> {
        private final Map<String, Integer> ids = new ConcurrentHashMap<>();
        private final HttpClient http = HttpClient.newHttpClient();
        private final ObjectMapper json = new ObjectMapper();
        private final String registry;
        private final String token;

        RegisteredAvro(String registry, String token) {
            this.registry = registry;
            this.token = token;
        }

        @Override
        public byte[] serialize(String topic, GenericRecord value) {
            if (value == null) {
                return null;
            }
            int id = ids.computeIfAbsent(topic, t -> register(t + "-value", value.getSchema()));
            try {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                out.write(ByteBuffer.allocate(5).put((byte) 0).putInt(id).array());
                BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
                new GenericDatumWriter<GenericRecord>(value.getSchema()).write(value, encoder);
                encoder.flush();
                return out.toByteArray();
            } catch (java.io.IOException e) {
                throw new SerializationException(e);
            }
        }

        private int register(String subject, Schema schema) {
            try {
                HttpRequest request = HttpRequest.newBuilder(URI.create(registry + "/subjects/" + subject + "/versions"))
                        .header("Authorization", "Bearer " + token)
                        .header("Content-Type", "application/vnd.schemaregistry.v1+json")
                        .POST(HttpRequest.BodyPublishers.ofString(json.writeValueAsString(Map.of("schema", schema.toString()))))
                        .build();
                HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() != 200) {
                    throw new SerializationException("registry returned " + response.statusCode() + " " + response.body());
                }
                return json.readTree(response.body()).get("id").asInt();
            } catch (java.io.IOException | InterruptedException e) {
                throw new SerializationException(e);
            }
        }
    }
}
