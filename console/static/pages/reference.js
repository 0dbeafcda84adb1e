// The API reference: Swagger UI, which is heavy and therefore loaded here alone, with
// the token of the session filled in.
import { html } from '../lib/html.js'
import { codeBlock, failure, heading } from '../lib/widgets.js'
import { route, setQuery } from '../lib/router.js'
import { tokenFor } from '../lib/session.js'
import { update } from '../lib/store.js'

const documents = [
  ['resources', 'Resources', '/openapi/v3/apis/cloud.vendor.io/v1alpha1'], ['messages', 'Messages and topics', '/admin/rest/openapi.yaml'], ['registry', 'Schema registry', '/registry/v1alpha1/openapi.yaml'],
  ['audit', 'Audit log', '/audit/v1alpha1/openapi.yaml'], ['system', 'System', '/system/v1alpha1/openapi.yaml'],
]

const allowed = new Set('A B BLOCKQUOTE BR CODE DD DEL DIV DL DT EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP TABLE TBODY TD TH THEAD TR U UL'.split(' '))
const attributes = new Set(['class', 'href', 'colspan', 'rowspan'])

/**
 * Swagger UI turns descriptions into markup. What it makes goes through this policy,
 * which lets through text with plain formatting and nothing that loads or runs.
 */
function policies() {
  if (!globalThis.trustedTypes || policies.vendor) return
  const inner = trustedTypes.createPolicy('console-inert', { createHTML: s => s })
  const clean = text => {
    const doc = new DOMParser().parseFromString(inner.createHTML(text), 'text/html') // inert: nothing in it runs or loads
    for (const e of [...doc.body.querySelectorAll('*')].reverse()) {
      if (!allowed.has(e.tagName)) { e.replaceWith(...(/^(SCRIPT|STYLE|IFRAME|OBJECT|TEMPLATE|SVG|MATH)$/i.test(e.tagName) ? [] : e.childNodes)); continue }
      for (const a of [...e.attributes]) if (!attributes.has(a.name) || a.name === 'href' && !/^(https?:|\/|#)/i.test(a.value)) e.removeAttribute(a.name)
    }
    return doc.body.innerHTML
  }
  trustedTypes.createPolicy('default', { createHTML: clean })
  policies.vendor = trustedTypes.createPolicy('console-vendor', { createScriptURL: s => { if (s === bundle) return s; throw new TypeError('not ours') } })
}
const bundle = new URL('../vendor/swagger-ui-bundle.js', import.meta.url).href

let loaded
function load() {
  return loaded ??= new Promise((resolve, reject) => {
    policies()
    const sheet = document.createElement('link')
    Object.assign(sheet, { rel: 'stylesheet', href: new URL('../vendor/swagger-ui.css', import.meta.url).href })
    const script = document.createElement('script')
    script.src = policies.vendor ? policies.vendor.createScriptURL(bundle) : bundle
    script.onload = () => resolve(globalThis.SwaggerUIBundle)
    script.onerror = () => { loaded = null; reject(new Error('The API reference could not be loaded.')) }
    document.head.append(sheet, script)
  })
}

/** <api-reference document="messages"> */
class Reference extends HTMLElement {
  static observedAttributes = ['document']
  connectedCallback() { this.show() }
  attributeChangedCallback() { if (this.isConnected) this.show() }
  async show() {
    const url = documents.find(d => d[0] === this.getAttribute('document'))?.[2] ?? documents[0][2]
    try {
      const SwaggerUI = await load()
      if (!this.isConnected) return
      const box = document.createElement('div')
      this.replaceChildren(box)
      SwaggerUI({
        url, domNode: box, deepLinking: false, docExpansion: 'list', defaultModelsExpandDepth: 0, validatorUrl: null, queryConfigEnabled: false, tryItOutEnabled: false, persistAuthorization: false,
        requestInterceptor: async r => {
          if (new URL(r.url, location.href).origin === location.origin && !r.headers.Authorization) r.headers.Authorization = 'Bearer ' + await tokenFor('')
          r.credentials = 'omit'
          return r
        },
      })
    } catch (e) { this.dispatchEvent(new CustomEvent('failed', { detail: e })) }
  }
}
customElements.define('api-reference', Reference)

export default () => {
  let error = null
  return () => {
    const now = documents.find(d => d[0] === route.query.get('doc')) ?? documents[0]
    return html`${heading({
      title: 'API reference', sub: 'Every surface that this console uses. Calls made here carry your token.',
      actions: html`<a class="button" href=${now[2]} target="_blank" rel="noopener">Open the document</a>`,
    })}
    ${failure(error)}
    <div class="stack"><div class="seg wrap" role="group" aria-label="Document">${documents.map(([id, title]) => html`<button type="button" aria-pressed=${id === now[0]} @click=${() => setQuery({ doc: id })}>${title}</button>`)}</div>
      <details class="more"><summary class="muted small">The same elsewhere</summary><div class="stack tight">
        <p class="muted small">The documents are OpenAPI, which Postman, Insomnia and code generators read. For kubectl, and for Grafana:</p>
        ${codeBlock(`freshet login --server ${location.origin}   # makes a context, also for kubectl\nfreshet generate grafana > freshet-dashboard.json`, 'Commands')}</div></details>
      <div class="card reference"><api-reference document=${now[0]} @failed=${e => { error = e.detail; update() }}></api-reference></div></div>`
  }
}
