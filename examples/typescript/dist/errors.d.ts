/** The base class of all errors of this package. */
export declare class FreshetError extends Error {
    name: string;
}
/** The server did not respond, even after retries. */
export declare class Unavailable extends FreshetError {
    name: string;
}
/** The server returned an error. */
export declare class ServerError extends FreshetError {
    name: string;
    /** The HTTP status. */
    readonly status: number;
    /** The server's text. */
    readonly reason: string;
    /** Identifies the call in the server's log; may be empty. */
    readonly requestId: string;
    /** The seconds that the server asks to wait; 0 without a Retry-After. */
    readonly retryAfter: number;
    constructor(status: number, reason: string, requestId?: string, retryAfter?: number);
}
/** Returns the error of a response, which a proxy may have sent. */
export declare function errorOf(response: Response, text: string): ServerError;
