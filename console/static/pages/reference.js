// The API reference: Swagger UI, which is loaded only on this page because of its size.
// Its requests carry the token of the session.
import { html } from '../lib/html.js'
import { codeBlock } from '../lib/copy.js'
import { choice } from '../lib/fields.js'
import { route, setQuery } from '../lib/router.js'
import { tokenFor } from '../lib/session.js'
import { update } from '../lib/store.js'
import { failure, heading } from '../lib/widgets.js'

const documents = [
  ['resources', 'Resources', '/openapi/v3/apis/cloud.vendor.io/v1alpha1'],
  ['messages', 'Messages and topics', '/admin/rest/openapi.yaml'],
  ['registry', 'Schema registry', '/registry/v1alpha1/openapi.yaml'],
  ['audit', 'Audit log', '/audit/v1alpha1/openapi.yaml'],
  ['system', 'System', '/system/v1alpha1/openapi.yaml'],
]

const allowedTags = new Set((
  'A B BLOCKQUOTE BR CODE DD DEL DIV DL DT EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP ' +
  'TABLE TBODY TD TH THEAD TR U UL').split(' '))
const allowedAttributes = new Set(['class', 'href', 'colspan', 'rowspan'])
const removedWithContent = /^(SCRIPT|STYLE|IFRAME|OBJECT|TEMPLATE|SVG|MATH)$/i
const bundle = new URL('../vendor/swagger-ui-bundle.js', import.meta.url).href
let vendorPolicy

/** Removes everything from markup that could load or run something, and keeps text with plain formatting. */
function sanitize(text, inert) {
  const doc = new DOMParser().parseFromString(inert.createHTML(text), 'text/html') // nothing in it runs or loads
  for (const e of [...doc.body.querySelectorAll('*')].reverse()) {
    if (!allowedTags.has(e.tagName)) {
      e.replaceWith(...(removedWithContent.test(e.tagName) ? [] : e.childNodes))
      continue
    }
    for (const { name, value } of [...e.attributes]) {
      const unsafeLink = name === 'href' && !/^(https?:|\/|#)/i.test(value)
      if (!allowedAttributes.has(name) || unsafeLink) e.removeAttribute(name)
    }
  }
  return doc.body.innerHTML
}

function scriptURL(url) {
  if (url === bundle) return url
  throw new TypeError('only the bundle of Swagger UI may be loaded')
}

/** Swagger UI turns descriptions into markup. The default policy sanitizes all of it. */
function createPolicies() {
  if (!globalThis.trustedTypes || vendorPolicy) return
  const inert = trustedTypes.createPolicy('console-inert', { createHTML: text => text })
  trustedTypes.createPolicy('default', { createHTML: text => sanitize(text, inert) })
  vendorPolicy = trustedTypes.createPolicy('console-vendor', { createScriptURL: scriptURL })
}

let library

/** Loads Swagger UI. After an error the next call tries again. */
function loadLibrary() {
  return library ??= new Promise((resolve, reject) => {
    createPolicies()
    const sheet = document.createElement('link')
    const href = new URL('../vendor/swagger-ui.css', import.meta.url).href
    Object.assign(sheet, { rel: 'stylesheet', href })
    const script = document.createElement('script')
    script.src = vendorPolicy ? vendorPolicy.createScriptURL(bundle) : bundle
    script.onload = () => resolve(globalThis.SwaggerUIBundle)
    script.onerror = () => {
      library = null
      reject(new Error('The API reference could not be loaded.'))
    }
    document.head.append(sheet, script)
  })
}

/** Adds the token to requests to this server. */
async function addToken(request) {
  const isOwn = new URL(request.url, location.href).origin === location.origin
  if (isOwn && !request.headers.Authorization) request.headers.Authorization = 'Bearer ' + await tokenFor('')
  request.credentials = 'omit'
  return request
}

/** <api-reference document="messages"> */
class Reference extends HTMLElement {
  static observedAttributes = ['document']

  connectedCallback() { this.show() }

  attributeChangedCallback() {
    if (this.isConnected) this.show()
  }

  async show() {
    const [, , url] = documents.find(d => d[0] === this.getAttribute('document')) ?? documents[0]
    try {
      const SwaggerUI = await loadLibrary()
      if (!this.isConnected) return
      const box = document.createElement('div')
      this.replaceChildren(box)
      SwaggerUI({
        url,
        domNode: box,
        deepLinking: false,
        docExpansion: 'list',
        defaultModelsExpandDepth: 0,
        validatorUrl: null,
        queryConfigEnabled: false,
        tryItOutEnabled: false,
        persistAuthorization: false,
        requestInterceptor: addToken,
      })
    } catch (e) {
      this.dispatchEvent(new CustomEvent('failed', { detail: e }))
    }
  }
}
customElements.define('api-reference', Reference)

const commands = `freshet login --server ${location.origin}   # creates a context, also for kubectl
freshet generate grafana > freshet-dashboard.json`

export default () => {
  let error = null
  const onfailed = e => {
    error = e.detail
    update()
  }
  return () => {
    const [id, , url] = documents.find(d => d[0] === route.query.get('doc')) ?? documents[0]
    return html`
      ${heading({
        title: 'API reference',
        sub: 'All APIs that this console uses. Requests from this page carry your token.',
        actions: html`<a class="button" href=${url} target="_blank" rel="noopener">Open the document</a>`,
      })}
      ${failure(error)}
      <div class="stack">
        ${choice(id, documents, doc => setQuery({ doc }), 'Document', 'wrap')}
        <details class="more">
          <summary class="muted small">Other tools</summary>
          <div class="stack tight">
            <p class="muted small">
              The documents are OpenAPI, which Postman, Insomnia and code generators read. For kubectl and Grafana:
            </p>
            ${codeBlock(commands, 'Commands')}
          </div>
        </details>
        <div class="card reference"><api-reference document=${id} @failed=${onfailed}></api-reference></div>
      </div>`
  }
}
