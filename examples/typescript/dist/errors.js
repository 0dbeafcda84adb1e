/** The base class of all errors of this package. */
export class FreshetError extends Error {
    name = "FreshetError";
}
/** The server did not respond, even after retries. */
export class Unavailable extends FreshetError {
    name = "Unavailable";
}
/** The server returned an error. */
export class ServerError extends FreshetError {
    name = "ServerError";
    /** The HTTP status. */
    status;
    /** The server's text. */
    reason;
    /** Identifies the call in the server's log; may be empty. */
    requestId;
    /** The seconds that the server asks to wait; 0 without a Retry-After. */
    retryAfter;
    constructor(status, reason, requestId = "", retryAfter = 0) {
        super(`${reason} (status ${status}${requestId === "" ? "" : `, request id ${requestId}`})`);
        this.status = status;
        this.reason = reason;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
    }
}
/** Returns the error of a response, which a proxy may have sent. */
export function errorOf(response, text) {
    let reason = text.trim().slice(0, 1024);
    try {
        const body = JSON.parse(text);
        reason = body.reason ?? body.error_description ?? body.message ?? reason;
    }
    catch { /* not JSON */ }
    const wait = Number(response.headers.get("Retry-After") ?? 0);
    return new ServerError(response.status, reason || `server responded ${response.status}`, response.headers.get("X-Request-Id") ?? "", Number.isFinite(wait) ? wait : 0);
}
