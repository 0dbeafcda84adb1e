import java.io.FileReader;
import java.util.Properties;

/** The settings of clients. */
final class Settings {
    private Settings() {}

    static Properties load(String file) throws Exception {
        Properties p = new Properties();
        try (FileReader reader = new FileReader(file)) {
            p.load(reader);
        }
        return p;
    }

    /** Returns a copy with more settings, given as name, value, name, value. */
    static Properties with(Properties settings, Object... more) {
        Properties p = new Properties();
        p.putAll(settings);
        for (int i = 0; i < more.length; i += 2) {
            p.put(more[i], more[i + 1]);
        }
        return p;
    }
}
