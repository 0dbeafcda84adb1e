import type { Credentials } from "./connection.ts";
import { Message } from "./message.ts";
export interface ClientOptions {
    /** An API key; without one, credentials. */
    apiKey?: string;
    /** The credentials of a service account. */
    credentials?: Credentials;
    /** The audience of its tokens: organization and instance. */
    audience?: string;
    /** The cluster, if it is not the default one. */
    organization?: string;
    cluster?: string;
}
export interface ProduceOptions {
    key?: string;
    properties?: Record<string, string>;
    /** Use the same key again to retry after an error without a duplicate. */
    idempotencyKey?: string;
}
/** A stored message. */
export interface Produced {
    messageId: string;
    stringId: string;
    /** Whether the topic already had a message with the idempotency key. */
    duplicate: boolean;
}
export interface ReceiveOptions {
    maxMessages?: number;
    /** How many seconds to wait for the first message; 20 by default. */
    wait?: number;
    /** The lease of the messages in seconds; 30 by default. */
    lease?: number;
    /** Ends the call, which then throws the reason of the signal. */
    signal?: AbortSignal;
}
export interface ConsumeOptions {
    lease?: number;
    /** Ends the loop after the current message. */
    signal?: AbortSignal;
}
/** Handles a message. lost is aborted if extending the lease failed. Returning false ends the loop. */
export type Handler = (message: Message, lost: AbortSignal) => Promise<boolean | void> | boolean | void;
/** A client of one server and one of its clusters. */
export declare class Client {
    private readonly connection;
    private readonly prefix;
    constructor(url: string, options?: ClientOptions);
    /**
     * Returns a client for the variables that `freshet apikey create --env-file` writes: FRESHET_SERVER
     * (http://127.0.0.1:8080), FRESHET_ORGANIZATION and FRESHET_CLUSTER (the default cluster), and
     * FRESHET_API_KEY or FRESHET_CREDENTIALS_FILE (freshet-data/admin.json) with FRESHET_AUDIENCE.
     *
     * Node.js reads the certificate authority of a server from a file at its start:
     * `echo $FRESHET_CA_DATA | base64 -d > ca.crt; export NODE_EXTRA_CA_CERTS=ca.crt`
     */
    static fromEnvironment(env?: Record<string, string | undefined>): Client;
    /** Sends one message. The promise resolves when the server has stored it. */
    produce(topic: string, value: Uint8Array | string, options?: ProduceOptions): Promise<Produced>;
    /**
     * Sends up to 1,000 messages with the same key and properties in one call. Throws the error of
     * the first message that was not stored. The n-th message gets the idempotency key with `-n`
     * appended, except a single one.
     */
    produceBatch(topic: string, values: (Uint8Array | string)[], options?: ProduceOptions): Promise<Produced[]>;
    /** Creates a subscription, and its topic if necessary. Returns false if it exists. */
    createSubscription(topic: string, subscription: string, options?: {
        earliest?: boolean;
    }): Promise<boolean>;
    /** Leases messages to this caller, and waits for the first one. Returns none if no message arrived in time. */
    receive(topic: string, subscription: string, options?: ReceiveOptions): Promise<Message[]>;
    /**
     * Calls the handler for each message, until it returns false or the signal is aborted. The lease
     * is extended while the handler runs. When the handler returns, the message is acknowledged. When
     * it throws, the server delivers the message again after a delay that doubles each time, up to a
     * minute, and onError (console.error) gets the error.
     */
    consume(topic: string, subscription: string, handle: Handler, options?: ConsumeOptions & {
        onError?: (error: unknown, message: Message) => void;
    }): Promise<void>;
    private call;
}
