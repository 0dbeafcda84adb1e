/** The credentials of a service account: the content of its file. */
export interface Credentials {
    client_id: string;
    client_secret: string;
}
export interface Call {
    method: string;
    path: string;
    body?: string;
    headers?: Record<string, string>;
    /** Allows retries when the server may have handled the call. */
    idempotent?: boolean;
    signal?: AbortSignal | undefined;
}
/** Returns a token for a call; rejected is a token that the server did not accept. */
export type TokenSource = (rejected?: string) => Promise<string>;
/** Calls one server. */
export declare class Connection {
    tokens: TokenSource;
    private readonly url;
    constructor(url: string);
    /** Makes a call with a token, and with retries. Returns undefined if the response has no body. */
    call<T>(c: Call): Promise<T | undefined>;
    /** Makes a call without a token, and with retries. */
    callAnonymously<T>(c: Call): Promise<T | undefined>;
    /** Repeats a call after transient errors, with exponential backoff and 50 % jitter. */
    private retry;
    /** Makes one attempt. */
    private send;
}
/** Returns a source that requests access tokens with the credentials of a service account, and renews them. */
export declare function clientCredentials(connection: Connection, credentials: Credentials, audience: string): TokenSource;
