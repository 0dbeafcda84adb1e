import { setTimeout as sleep } from "node:timers/promises";
import { ServerError } from "./errors.js";
/** A message that is leased to this caller. Acknowledge it, or return it with nack. */
export class Message {
    value;
    messageId;
    stringId;
    /** How often the message was delivered before. */
    redeliveries;
    key;
    properties;
    connection;
    path;
    lease;
    /** Only the client creates messages; path is that of the subscription, lease is in seconds. */
    constructor(connection, path, received, lease) {
        this.connection = connection;
        this.path = path;
        this.lease = lease;
        this.value = Buffer.from(received.payload, "base64");
        this.messageId = received.messageId;
        this.stringId = received.messageStringId;
        this.redeliveries = received.redeliveryCount;
        this.key = received.key;
        this.properties = received.properties ?? {};
    }
    /** Returns the value as UTF-8 text. */
    text() { return new TextDecoder().decode(this.value); }
    /** Acknowledges the message. The server accepts this also after the lease has ended. */
    async ack() {
        await this.send("PUT", "/messages", [this.messageId]);
    }
    /** Returns the message: the server delivers it again after delay seconds. */
    async nack(delay = 0) {
        try {
            await this.send("POST", "/message/nack", { messageId: this.messageId, delayMillis: Math.round(1000 * delay) });
        }
        catch (e) {
            // 409: the lease has ended, so the server delivers the message again anyway.
            if (!(e instanceof ServerError && e.status === 409))
                throw e;
        }
    }
    /** Starts the lease again. A ServerError with status 409 means that it had ended. */
    async extend() {
        await this.send("POST", "/message/extend", { messageId: this.messageId, ackTimeoutMillis: Math.round(1000 * this.lease) });
    }
    /** Extends the lease again and again, until stop is called. */
    hold() {
        const lost = new AbortController();
        const over = new AbortController();
        const running = (async () => {
            for (;;) {
                try {
                    await sleep(1000 * this.lease / 3, undefined, { signal: over.signal });
                }
                catch {
                    return; // stopped
                }
                try {
                    await this.extend();
                }
                catch {
                    lost.abort(); // another consumer may receive it now: stop, or acknowledge if the work is done
                    return;
                }
            }
        })();
        return { lost: lost.signal, stop: async () => { over.abort(); await running; } };
    }
    async send(method, suffix, body) {
        await this.connection.call({
            method, path: this.path + suffix, body: JSON.stringify(body), idempotent: true,
            headers: { "Content-Type": "application/json" },
        });
    }
}
