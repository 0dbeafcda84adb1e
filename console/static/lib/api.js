// Every request of the console goes through here: the token, the request id, errors
// that a person can act on, and the record that the activity drawer and the
// snippets show.
import { session, tokenFor, replaced, SignInError } from './session.js'
import { emit, on, update } from './store.js'

export const group = '/apis/cloud.vendor.io/v1alpha1'

/** The path of a kind in an organization. */
export const resource = (org, kind, name) =>
  `${group}${org ? '/namespaces/' + encodeURIComponent(org) : ''}/${kind}${name ? '/' + encodeURIComponent(name) : ''}`

const advice = {
  400: 'Correct what the message names and send it again.',
  401: 'Sign in again: the token has ended, was revoked, or is for another audience.',
  403: 'Ask an administrator of the organization for a role that has the permission.',
  404: 'It may have been deleted meanwhile. Go back to the list.',
  408: 'The network is slow. Try again.',
  409: 'Somebody changed it meanwhile, or it is in use. Load it again and repeat the change.',
  410: 'The list is too old. Load the page again.',
  413: 'Make it smaller; the limit is in the message.',
  415: 'The content type is not taken here.',
  422: 'Correct the fields that the message names.',
  429: 'Too many calls at once. Wait a moment.',
  503: 'The server is starting or has no room. Look at System.',
}

/** A request that was refused, or did not get there (status 0). */
export class ApiError extends Error {
  constructor(status, message, more = {}) {
    super(message)
    this.status = status
    Object.assign(this, { reason: '', requestId: '', causes: [], advice: advice[status] ?? (status ? 'The server log has more under the request id.' : 'Check the network, and whether the server runs.') }, more)
  }
}

/** The last requests, newest first. */
export const activity = []
const mostRecords = 200, mostBody = 16384
let serial = 0
const prefix = Array.from(globalThis.crypto?.getRandomValues?.(new Uint8Array(4)) ?? [0], b => b.toString(16).padStart(2, '0')).join('')

function record(method, url, o) {
  const entry = {
    id: `console-${prefix}-${++serial}`, method, url, at: Date.now(), status: 0, ms: null, contentType: o.contentType, headers: o.headers ?? {},
    body: o.secret ? null : typeof o.body === 'string' ? o.body.slice(0, mostBody) : o.body ? `<${o.body.byteLength ?? o.body.size ?? '?'} bytes>` : null,
    whole: !o.secret && (o.body == null || typeof o.body === 'string' && o.body.length <= mostBody), audience: o.audience ?? '', background: !!o.background,
  }
  activity.unshift(entry)
  if (activity.length > mostRecords) activity.length = mostRecords
  return entry
}

/** The last request that a person caused, for "show as". */
export const lastRequest = (test = () => true) => activity.find(e => !e.background && test(e))

/**
 * Sends a request. Options: body (a value becomes JSON, a string or bytes go as they
 * are), contentType, accept, headers, audience (whose token), signal, secret (leave
 * the body out of the record), background (no act of a person), stream (the answer
 * itself, unread), bytes (the answer as bytes), open (without a token).
 * @returns {Promise<{status: number, headers: Headers, data: any, response: Response, entry: object}>}
 */
export async function call(method, url, options = {}) {
  const o = { accept: 'application/json', ...options }
  if (o.body != null && typeof o.body === 'object' && !(o.body instanceof ArrayBuffer) && !ArrayBuffer.isView(o.body) && !(o.body instanceof Blob)) {
    o.body = JSON.stringify(o.body)
    o.contentType ??= 'application/json'
  }
  const entry = record(method, url, o)
  const began = performance.now()
  try {
    const response = await send(method, url, o, entry)
    entry.status = response.status
    entry.requestId = response.headers.get('X-Request-Id') ?? entry.id
    if (!response.ok) throw await failure(response, entry, o)
    const warning = response.headers.get('Warning')
    if (warning && !o.background) emit('toast', { kind: 'warn', text: warning.replace(/^299 - "?|"$/g, '').replace(/\\"/g, '"') })
    const data = o.stream ? null : await read(response, o)
    return { status: response.status, headers: response.headers, data, response, entry }
  } catch (e) {
    entry.error = e.message
    throw e
  } finally {
    entry.ms = performance.now() - began
    if (!o.background) update()
  }
}

async function send(method, url, o, entry) {
  for (let attempt = 0; ; attempt++) {
    const headers = { Accept: o.accept, 'X-Request-Id': entry.id, ...o.headers }
    if (o.contentType) headers['Content-Type'] = o.contentType
    let token = ''
    if (!o.open) {
      try {
        token = await tokenFor(o.audience)
      } catch (e) {
        throw new ApiError(e instanceof SignInError ? 401 : 0, e.message, { requestId: entry.id })
      }
      headers.Authorization = 'Bearer ' + token
    }
    let response
    try {
      response = await fetch(url, { method, headers, body: o.body, signal: o.signal, credentials: 'omit', cache: 'no-store', redirect: 'error' })
    } catch (e) {
      if (e.name === 'AbortError') throw e
      throw new ApiError(0, 'The server cannot be reached.', { requestId: entry.id })
    }
    if (response.status !== 401 || o.open || attempt > 0) return response
    if (await replaced(token, o.audience ?? '')) continue
    if (!session.expired) return response
    // The page waits until somebody has signed in again, and then goes on.
    await response.body?.cancel()
    const over = new AbortController()
    await new Promise((resolve, reject) => {
      on('signedin', resolve, over.signal)
      on('signedout', () => reject(new ApiError(401, 'You signed out.')), over.signal)
      o.signal?.addEventListener('abort', () => reject(new DOMException('left the page', 'AbortError')))
    }).finally(() => over.abort())
  }
}

async function read(response, o) {
  if (o.bytes) return new Uint8Array(await response.arrayBuffer())
  const text = await response.text()
  const type = response.headers.get('Content-Type') ?? ''
  if (!text || !type.includes('json')) return text
  try { return JSON.parse(text) } catch { return text }
}

/** Every surface has its own form of errors; all become one. */
async function failure(response, entry, o) {
  const text = await response.text().catch(() => '')
  let body = {}
  try { body = JSON.parse(text) } catch { /* no JSON */ }
  const message = body.message || body.reason || body.error_description || body.error || (text.length < 500 && text) || `The server answered ${response.status}.`
  return new ApiError(response.status, message, {
    reason: body.kind === 'Status' ? body.reason : body.error_code ? `error code ${body.error_code}` : response.statusText,
    code: body.error_code, requestId: entry.requestId, causes: body.details?.causes ?? [],
    retryAfter: response.headers.get('Retry-After'), body,
    ...(response.status === 401 && o.audience && session.kind === 'token' && { advice: `The token that you signed in with is not one for this cluster: it has another audience than ${o.audience}, or has ended. Sign in with the credentials file, the client ID and secret, or an API key.` }),
  })
}

export const get = (url, o) => call('GET', url, o).then(r => r.data)
export const post = (url, body, o) => call('POST', url, { body, ...o }).then(r => r.data)
export const put = (url, body, o) => call('PUT', url, { body, ...o }).then(r => r.data)
export const patch = (url, body, o) => call('PATCH', url, { body, contentType: 'application/merge-patch+json', ...o }).then(r => r.data)
export const del = (url, o) => call('DELETE', url, o).then(r => r.data)

/** Who we are, once per session. */
export async function whoAmI() {
  const answer = await post('/apis/authorization.vendor.io/v1alpha1/selfsubjectuserreviews', {}, { background: true })
  session.who = answer.status
  update()
  return answer.status
}
