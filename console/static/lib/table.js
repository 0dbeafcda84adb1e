// A table that draws only the rows that are seen, so ten thousand cost as much as
// thirty. Filter and order are in the URL.
import { html, nothing, render } from './html.js'
import { icon } from './icons.js'
import { route, setQuery } from './router.js'
import { count } from './format.js'

const narrow = matchMedia('(max-width: 860px)')

/**
 * <data-table .data=${{ rows, columns, href, label, noun, tools, quiet }}>
 * columns: {title, text(row) for filter and order, cell(row) to show (text without it), width
 * as a track of a grid, num: true; on narrow screens the first column and the second
 * stand in one line, the others beneath; wide: true leaves one out there, said: true puts its title before it,
 * has(row) false leaves it out}.
 * href(row) is where a row leads; key "q" of the URL filters, "sort" orders.
 */
class DataTable extends HTMLElement {
  connectedCallback() {
    this.seen = () => requestAnimationFrame(() => this.draw())
    addEventListener('scroll', this.seen, { passive: true })
    addEventListener('resize', this.seen)
    narrow.addEventListener('change', this.seen)
    this.draw()
  }

  disconnectedCallback() {
    removeEventListener('scroll', this.seen)
    removeEventListener('resize', this.seen)
    narrow.removeEventListener('change', this.seen)
  }

  set data(d) { this.now = d; if (this.isConnected) this.draw() }

  get prefix() { return this.now.param ?? '' }

  shown() {
    const q = (route.query.get(this.prefix + 'q') ?? '').toLowerCase().trim()
    const sort = route.query.get(this.prefix + 'sort') ?? ''
    if (this.cached && this.cached.rows === this.now.rows && this.cached.q === q && this.cached.sort === sort) return this.cached.list
    const words = q.split(/\s+/).filter(Boolean)
    let list = this.now.rows
    if (words.length) {
      list = list.filter(r => { const text = this.now.columns.map(c => c.text?.(r) ?? '').join(' ').toLowerCase(); return words.every(w => text.includes(w)) })
    }
    const [, down, index] = /^(-?)(\d+)$/.exec(sort) ?? []
    const column = this.now.columns[index]
    if (column?.text) {
      const sign = down ? -1 : 1
      const keys = new Map(list.map(r => [r, column.num ? Number(column.text(r)) : String(column.text(r) ?? '')]))
      list = [...list].sort((a, b) => { const x = keys.get(a), y = keys.get(b); return x < y ? -sign : x > y ? sign : 0 })
    }
    this.cached = { rows: this.now.rows, q, sort, list }
    return list
  }

  draw() {
    if (!this.now || !this.isConnected) return
    const { columns, rows, noun = 'rows', label, tools, quiet } = this.now
    const rowHeight = narrow.matches ? 64 : 46
    const cols = columns.map((c, i) => ({ ...c, i })).filter(c => !narrow.matches || !c.wide)
    const list = this.shown()
    const grid = narrow.matches ? '' : `grid-template-columns:${cols.map(c => c.width ?? 'minmax(0,1fr)').join(' ')}`
    const body = this.querySelector('.rows')
    const top = body ? -body.getBoundingClientRect().top : 0
    const many = list.length > 60
    const first = many ? Math.max(0, Math.min(list.length, Math.floor(top / rowHeight)) - 8) : 0
    const last = many ? Math.min(list.length, first + Math.ceil(innerHeight / rowHeight) + 16) : list.length
    const q = route.query.get(this.prefix + 'q') ?? ''
    render(html`
      ${quiet ? nothing : html`<div class="table-tools">
        <label class="filter">${icon('search', 16)}<input type="search" data-filter placeholder="Filter" aria-label=${`Filter ${noun}`} .value=${q} @input=${e => { setQuery({ [this.prefix + 'q']: e.target.value }); this.draw() }}><kbd>/</kbd></label>
        <span class="muted small" role="status">${list.length === rows.length ? `${count(rows.length)} ${noun}` : `${count(list.length)} of ${count(rows.length)} ${noun}`}</span>${tools ?? nothing}</div>`}
      <div class="table" role="table" aria-label=${label ?? noun} aria-rowcount=${list.length + 1}>
        <div class="row head" role="row" .style=${grid}>${cols.map(c => html`<div role="columnheader" class=${c.num ? 'num' : ''} aria-sort=${this.order(c.i)}>${c.text && !quiet
          ? html`<button type="button" class="sort" @click=${() => this.sortBy(c.i)}>${c.title}</button>` : c.title}</div>`)}</div>
        <div class="rows" role="rowgroup" .style=${many ? `height:${list.length * rowHeight}px;padding-top:${first * rowHeight}px` : ''} @keydown=${e => this.keys(e)}>
          ${list.slice(first, last).map((r, n) => this.row(r, cols, grid, first + n))}
        </div>
        ${list.length === 0 ? html`<p class="none">Nothing matches “${q}”. <button type="button" class="link" @click=${() => setQuery({ [this.prefix + 'q']: '' })}>Clear the filter</button></p>` : nothing}
      </div>`, this)
    if (!body && many) requestAnimationFrame(() => this.draw())
  }

  row(r, cols, grid, n) {
    const href = this.now.href?.(r)
    return html`<div role="row" aria-rowindex=${n + 2} class="row ${href ? 'to' : ''} ${this.now.rowClass?.(r) ?? ''}" .style=${grid} @click=${e => { if (href && !e.target.closest('a,button,input,select') && !String(getSelection())) e.currentTarget.querySelector('a')?.click() }}>
      ${(narrow.matches ? cols.slice(0, 2) : cols).map((c, i) => html`<div role="cell" class=${c.num && !narrow.matches ? 'num' : ''}>${i === 0 && href ? html`<a href=${href}>${show(c, r)}</a>` : html`${i === 1 && narrow.matches && c.said ? html`<span class="muted small">${c.title.toLowerCase()} </span>` : nothing}${show(c, r)}`}</div>`)}
      ${narrow.matches && cols.length > 2 ? html`<div role="cell" class="second">${cols.slice(2).filter(c => c.has?.(r) ?? true).map(c => html`<span>${c.said ? c.title.toLowerCase() + ' ' : ''}${show(c, r)}</span>`)}</div>` : nothing}</div>`
  }

  order(i) {
    const sort = route.query.get(this.prefix + 'sort')
    return sort === String(i) ? 'ascending' : sort === '-' + i ? 'descending' : nothing
  }

  sortBy(i) {
    const sort = route.query.get(this.prefix + 'sort')
    setQuery({ [this.prefix + 'sort']: sort === String(i) ? '-' + i : sort === '-' + i ? '' : String(i) })
  }

  keys(e) {
    if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
    const row = e.target.closest('.row')
    const next = e.key === 'ArrowDown' ? row?.nextElementSibling : row?.previousElementSibling
    const a = next?.querySelector('a')
    if (a) { e.preventDefault(); a.focus() }
  }
}
const show = (column, row) => column.cell ? column.cell(row) : column.text(row)
customElements.define('data-table', DataTable)

export const table = data => html`<data-table .data=${data}></data-table>`
