import type { Connection } from "./connection.ts";
/** A message in a response of the server. */
export interface Received {
    messageId: string;
    messageStringId: string;
    payload: string;
    redeliveryCount: number;
    key?: string;
    properties?: Record<string, string>;
}
/** A lease that is extended until stop is called. The signal lost is aborted if extending fails. */
export interface Lease {
    lost: AbortSignal;
    stop(): Promise<void>;
}
/** A message that is leased to this caller. Acknowledge it, or return it with nack. */
export declare class Message {
    readonly value: Uint8Array;
    readonly messageId: string;
    readonly stringId: string;
    /** How often the message was delivered before. */
    readonly redeliveries: number;
    readonly key: string | undefined;
    readonly properties: Record<string, string>;
    private readonly connection;
    private readonly path;
    private readonly lease;
    /** Only the client creates messages; path is that of the subscription, lease is in seconds. */
    constructor(connection: Connection, path: string, received: Received, lease: number);
    /** Returns the value as UTF-8 text. */
    text(): string;
    /** Acknowledges the message. The server accepts this also after the lease has ended. */
    ack(): Promise<void>;
    /** Returns the message: the server delivers it again after delay seconds. */
    nack(delay?: number): Promise<void>;
    /** Starts the lease again. A ServerError with status 409 means that it had ended. */
    extend(): Promise<void>;
    /** Extends the lease again and again, until stop is called. */
    hold(): Lease;
    private send;
}
