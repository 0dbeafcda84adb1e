import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { clientCredentials, Connection } from "./connection.js";
import { FreshetError, ServerError } from "./errors.js";
import { Message } from "./message.js";
const messages = "/admin/rest/topics/v1/";
const admin = "/admin/v2/persistent/";
const defaultAudience = "urn:vendor:messaging:default:default";
/** A client of one server and one of its clusters. */
export class Client {
    connection;
    prefix;
    constructor(url, options = {}) {
        const { organization = "", cluster = "" } = options;
        if ((organization === "") !== (cluster === "")) {
            throw new FreshetError("a cluster needs both organization and cluster");
        }
        this.connection = new Connection(url);
        this.prefix = cluster === "" ? ""
            : `/clusters/${encodeURIComponent(organization)}/${encodeURIComponent(cluster)}`;
        const apiKey = options.apiKey?.trim() ?? "";
        if (apiKey !== "") {
            this.connection.tokens = async () => apiKey;
        }
        else if (options.credentials !== undefined) {
            this.connection.tokens =
                clientCredentials(this.connection, options.credentials, options.audience ?? defaultAudience);
        }
    }
    /**
     * Returns a client for the variables that `freshet apikey create --env-file` writes: FRESHET_SERVER
     * (http://127.0.0.1:8080), FRESHET_ORGANIZATION and FRESHET_CLUSTER (the default cluster), and
     * FRESHET_API_KEY or FRESHET_CREDENTIALS_FILE (freshet-data/admin.json) with FRESHET_AUDIENCE.
     *
     * Node.js reads the certificate authority of a server from a file at its start:
     * `echo $FRESHET_CA_DATA | base64 -d > ca.crt; export NODE_EXTRA_CA_CERTS=ca.crt`
     */
    static fromEnvironment(env = process.env) {
        const options = { audience: env["FRESHET_AUDIENCE"] ?? defaultAudience };
        if (env["FRESHET_API_KEY"]) {
            options.apiKey = env["FRESHET_API_KEY"];
        }
        else {
            try {
                const file = env["FRESHET_CREDENTIALS_FILE"] ?? "freshet-data/admin.json";
                options.credentials = JSON.parse(readFileSync(file, "utf8"));
            }
            catch (e) {
                throw new FreshetError("no FRESHET_API_KEY is set, and the credentials file cannot be read: " +
                    (e instanceof Error ? e.message : String(e)), { cause: e });
            }
        }
        if (env["FRESHET_CLUSTER"]) {
            options.organization = env["FRESHET_ORGANIZATION"] ?? "";
            options.cluster = env["FRESHET_CLUSTER"];
        }
        return new Client(env["FRESHET_SERVER"] ?? "http://127.0.0.1:8080", options);
    }
    /** Sends one message. The promise resolves when the server has stored it. */
    async produce(topic, value, options = {}) {
        const [stored] = await this.produceBatch(topic, [value], options);
        return stored;
    }
    /**
     * Sends up to 1,000 messages with the same key and properties in one call. Throws the error of
     * the first message that was not stored. The n-th message gets the idempotency key with `-n`
     * appended, except a single one.
     */
    async produceBatch(topic, values, options = {}) {
        const { key, properties, idempotencyKey = randomUUID() } = options;
        const list = values.map((value, n) => ({
            payload: Buffer.from(value).toString("base64"), key, properties,
            idempotencyKey: values.length === 1 ? idempotencyKey : `${idempotencyKey}-${n}`,
        }));
        const response = await this.call("POST", `${messages}${topicPath(topic)}/messages`, { messages: list }, { idempotent: true });
        if (response?.results.length !== values.length) {
            throw new FreshetError("server response does not have one result for each message");
        }
        return response.results.map((r) => {
            if (r.status >= 300)
                throw new ServerError(r.status, r.reason ?? "");
            return { messageId: r.messageId, stringId: r.messageStringId, duplicate: r.duplicate ?? false };
        });
    }
    /** Creates a subscription, and its topic if necessary. Returns false if it exists. */
    async createSubscription(topic, subscription, options = {}) {
        const path = `${admin}${topicPath(topic)}/subscription/${encodeURIComponent(subscription)}`;
        try {
            await this.call("PUT", path, options.earliest === true ? "earliest" : "latest");
        }
        catch (e) {
            if (e instanceof ServerError && e.status === 409)
                return false;
            throw e;
        }
        return true;
    }
    /** Leases messages to this caller, and waits for the first one. Returns none if no message arrived in time. */
    async receive(topic, subscription, options = {}) {
        const { maxMessages = 1, wait = 20, lease = 30, signal } = options;
        const path = `${messages}${topicPath(topic)}/${encodeURIComponent(subscription)}`;
        const body = {
            maxMessages, timeoutMillis: Math.round(1000 * wait), ackTimeoutMillis: Math.round(1000 * lease),
        };
        const response = await this.call("POST", `${path}/messages`, body, { idempotent: true, signal });
        return (response?.messages ?? []).map((m) => new Message(this.connection, this.prefix + path, m, lease));
    }
    /**
     * Calls the handler for each message, until it returns false or the signal is aborted. The lease
     * is extended while the handler runs. When the handler returns, the message is acknowledged. When
     * it throws, the server delivers the message again after a delay that doubles each time, up to a
     * minute, and onError (console.error) gets the error.
     */
    async consume(topic, subscription, handle, options = {}) {
        const { lease = 30, signal, onError = (e, m) => { console.error(`message ${m.stringId} is returned: ${e}`); } } = options;
        const stopped = () => signal?.aborted === true;
        while (!stopped()) {
            let received;
            try {
                // One at a time: the lease of a message that waits here would have to be extended, too.
                received = await this.receive(topic, subscription, { lease, ...(signal && { signal }) });
            }
            catch (e) {
                if (stopped())
                    return;
                throw e;
            }
            for (const message of received) {
                const held = message.hold();
                let more;
                try {
                    more = await handle(message, held.lost);
                }
                catch (e) {
                    await held.stop();
                    onError(e, message);
                    await message.nack(Math.min(60, 2 ** message.redeliveries));
                    continue;
                }
                await held.stop();
                await message.ack();
                if (more === false)
                    return;
            }
        }
    }
    call(method, path, body, options = {}) {
        return this.connection.call({
            method, path: this.prefix + path, body: JSON.stringify(body), ...options,
            headers: { "Content-Type": "application/json", Accept: "application/json" },
        });
    }
}
/** Returns the path of a topic, from topic or tenant/namespace/topic. */
function topicPath(name) {
    const parts = name.includes("/") ? name.split("/") : ["public", "default", name];
    if (parts.length !== 3 || parts.includes("")) {
        throw new FreshetError(`${JSON.stringify(name)} is not the name of a topic: topic or tenant/namespace/topic`);
    }
    return parts.map(encodeURIComponent).join("/");
}
