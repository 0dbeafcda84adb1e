// All requests of the console are sent here. This module adds the token and the request
// id, turns error responses into ApiError, and records requests for the activity drawer
// and the snippets.
import { session, tokenFor, replaceToken, SignInError } from './session.js'
import { emit, on, update } from './store.js'

export const apiRoot = '/apis/cloud.vendor.io/v1alpha1'

/** The path of a resource type in an organization, or of one object. */
export function resource(org, plural, name) {
  const namespace = org ? '/namespaces/' + encodeURIComponent(org) : ''
  return `${apiRoot}${namespace}/${plural}${name ? '/' + encodeURIComponent(name) : ''}`
}

const advice = {
  400: 'Correct the value that the message names and send the request again.',
  401: 'Sign in again: the token has expired, was revoked, or is for another audience.',
  403: 'Ask an administrator of the organization for a role that has the permission.',
  404: 'The object may have been deleted in the meantime. Go back to the list.',
  408: 'The network is slow. Try again.',
  409: 'The object was changed in the meantime or is in use. Load it again and repeat the change.',
  410: 'The list is out of date. Reload the page.',
  413: 'Send less data; the message names the limit.',
  415: 'The server does not accept this content type here.',
  422: 'Correct the fields that the message names.',
  429: 'The rate limit is exceeded. Wait a moment and try again.',
  503: 'The server is starting or has no capacity left. Check the System page.',
}

const adviceFor = status => advice[status] ?? (status
  ? 'Search the server log for the request id.'
  : 'Check the network connection, and that the server is running.')

/** A request that the server rejected, or that did not reach it (status 0). */
export class ApiError extends Error {
  constructor(status, message, more = {}) {
    super(message)
    this.status = status
    Object.assign(this, { reason: '', requestId: '', causes: [], advice: adviceFor(status) }, more)
  }
}

/** The last requests, newest first. */
export const activity = []
const maxRecords = 200
const maxBody = 16384
let serial = 0
const randomBytes = globalThis.crypto?.getRandomValues?.(new Uint8Array(4)) ?? [0]
const prefix = Array.from(randomBytes, b => b.toString(16).padStart(2, '0')).join('')

function recordedBody({ body, secret }) {
  if (secret || body == null) return null
  if (typeof body === 'string') return body.slice(0, maxBody)
  return `<${body.byteLength ?? body.size ?? '?'} bytes>`
}

function record(method, url, o) {
  const complete = o.body == null || typeof o.body === 'string' && o.body.length <= maxBody
  const entry = {
    id: `console-${prefix}-${++serial}`,
    method,
    url,
    at: Date.now(),
    status: 0,
    ms: null,
    contentType: o.contentType,
    headers: o.headers ?? {},
    body: recordedBody(o),
    whole: !o.secret && complete,
    audience: o.audience ?? '',
    background: !!o.background,
  }
  activity.unshift(entry)
  if (activity.length > maxRecords) activity.length = maxRecords
  return entry
}

/** The last request that was sent for an action of the user, for "Show as a command". */
export const lastRequest = (test = () => true) => activity.find(e => !e.background && test(e))

const isRaw = body => body instanceof ArrayBuffer || ArrayBuffer.isView(body) || body instanceof Blob

/**
 * Sends a request. Options: body (an object is sent as JSON, a string or bytes
 * unchanged), contentType, accept, headers, audience (of the token), signal, secret (the
 * body is not recorded), background (not an action of the user), stream (the response
 * body is not read), bytes (the response body as bytes), open (without a token).
 * @returns {Promise<{status: number, headers: Headers, data: any, response: Response, entry: object}>}
 */
export async function call(method, url, options = {}) {
  const o = { accept: 'application/json', ...options }
  if (o.body != null && typeof o.body === 'object' && !isRaw(o.body)) {
    o.body = JSON.stringify(o.body)
    o.contentType ??= 'application/json'
  }
  const entry = record(method, url, o)
  const began = performance.now()
  try {
    const response = await send(method, url, o, entry)
    entry.status = response.status
    entry.requestId = response.headers.get('X-Request-Id') ?? entry.id
    if (!response.ok) throw await errorOf(response, entry, o)
    const warning = response.headers.get('Warning')
    if (warning && !o.background) {
      const text = warning.replace(/^299 - "?|"$/g, '').replace(/\\"/g, '"')
      emit('toast', { kind: 'warn', text })
    }
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
      response = await fetch(url, {
        method, headers, body: o.body, signal: o.signal, credentials: 'omit', cache: 'no-store', redirect: 'error',
      })
    } catch (e) {
      if (e.name === 'AbortError') throw e
      throw new ApiError(0, 'The server is unreachable.', { requestId: entry.id })
    }
    if (response.status !== 401 || o.open || attempt > 0) return response
    if (await replaceToken(token, o.audience ?? '')) continue
    if (!session.expired) return response
    await response.body?.cancel()
    await nextSignIn(o.signal)
  }
}

/** Waits until the user has signed in again, so that the page can continue. */
function nextSignIn(signal) {
  const done = new AbortController()
  return new Promise((resolve, reject) => {
    on('signedin', resolve, done.signal)
    on('signedout', () => reject(new ApiError(401, 'You signed out.')), done.signal)
    signal?.addEventListener('abort', () => reject(new DOMException('the page was closed', 'AbortError')))
  }).finally(() => done.abort())
}

async function read(response, o) {
  if (o.bytes) return new Uint8Array(await response.arrayBuffer())
  const text = await response.text()
  const type = response.headers.get('Content-Type') ?? ''
  if (!text || !type.includes('json')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Turns an error response of any API of the server into an ApiError. */
async function errorOf(response, entry, o) {
  const text = await response.text().catch(() => '')
  let body = {}
  try {
    body = JSON.parse(text)
  } catch { /* not JSON */ }
  const message = body.message || body.reason || body.error_description || body.error ||
    (text.length < 500 && text) || `The server returned status ${response.status}.`
  const code = body.error_code ? `error code ${body.error_code}` : response.statusText
  const error = new ApiError(response.status, message, {
    reason: body.kind === 'Status' ? body.reason : code,
    code: body.error_code,
    requestId: entry.requestId,
    causes: body.details?.causes ?? [],
    retryAfter: response.headers.get('Retry-After'),
    body,
  })
  if (response.status === 401 && o.audience && session.kind === 'token') {
    error.advice = `The token of this session is not valid for this cluster: it has a different audience than ` +
      `${o.audience}, or has expired. Sign in with a credentials file, a client ID and secret, or an API key.`
  }
  return error
}

export const get = (url, o) => call('GET', url, o).then(r => r.data)
export const post = (url, body, o) => call('POST', url, { body, ...o }).then(r => r.data)
export const patch = (url, body, o) =>
  call('PATCH', url, { body, contentType: 'application/merge-patch+json', ...o }).then(r => r.data)
export const del = (url, o) => call('DELETE', url, o).then(r => r.data)

/** Loads the identity of the caller into the session. */
export async function loadIdentity() {
  const review = await post('/apis/authorization.vendor.io/v1alpha1/selfsubjectuserreviews', {}, { background: true })
  session.identity = review.status
  update()
  return review.status
}
