import java.util.Arrays;

/** Runs the steps: Main PROPERTIES [PART-OF-A-NAME…]. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        Producing.steps();
        Consuming.steps();
        Groups.steps();
        Topics.steps();
        Origins.steps();
        Administration.steps();
        Security.steps();
        try {
            Class.forName("Newest").getMethod("steps").invoke(null); // steps for the newest clients only
        } catch (ClassNotFoundException e) {
            System.out.println("without the steps for the newest clients");
        }
        boolean good = Scenario.run(args[0], Arrays.asList(args).subList(1, args.length));
        System.out.println("end");
        System.exit(good ? 0 : 1); // do not wait for clients that failed to close
    }
}
