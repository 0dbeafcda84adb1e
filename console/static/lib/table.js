// A table that renders only the visible rows, so that ten thousand rows cost as much as
// thirty. The filter and the order are in the URL.
import { html, nothing, render } from './html.js'
import { icon } from './icons.js'
import { route, setQuery } from './router.js'
import { count } from './format.js'

const narrow = matchMedia('(max-width: 860px)')
const windowThreshold = 60 // longer lists render only the visible rows

/**
 * <data-table .data=${{ rows, columns, href, label, noun, tools, quiet, param, rowClass }}>
 *
 * A column has: title; text(row), the text to filter and to sort by; cell(row), the
 * content, by default the text; width, a track of a CSS grid; num: true for numbers.
 * On narrow screens the first two columns share a line, and the others are below it.
 * There, wideOnly: true hides a column, labeled: true shows its title, and has(row) hides
 * single cells.
 *
 * href(row) is the link of a row. The parameter "q" of the URL filters, "sort" sorts;
 * param is a prefix for both. quiet: true has neither.
 */
class DataTable extends HTMLElement {
  connectedCallback() {
    this.redraw = () => requestAnimationFrame(() => this.draw())
    addEventListener('scroll', this.redraw, { passive: true })
    addEventListener('resize', this.redraw)
    narrow.addEventListener('change', this.redraw)
    this.draw()
  }

  disconnectedCallback() {
    removeEventListener('scroll', this.redraw)
    removeEventListener('resize', this.redraw)
    narrow.removeEventListener('change', this.redraw)
  }

  set data(data) {
    this.current = data
    if (this.isConnected) this.draw()
  }

  get filterParam() { return (this.current.param ?? '') + 'q' }
  get sortParam() { return (this.current.param ?? '') + 'sort' }

  /** The rows that match the filter, sorted. */
  matching() {
    const { rows, columns } = this.current
    const filter = (route.query.get(this.filterParam) ?? '').toLowerCase().trim()
    const sort = route.query.get(this.sortParam) ?? ''
    const cached = this.cached
    if (cached && cached.rows === rows && cached.filter === filter && cached.sort === sort) return cached.list
    const list = sorted(filtered(rows, columns, filter), columns, sort)
    this.cached = { rows, filter, sort, list }
    return list
  }

  draw() {
    if (!this.current || !this.isConnected) return
    const { noun = 'rows', label, quiet, columns: all } = this.current
    const rowHeight = narrow.matches ? 64 : 46
    const columns = all.map((c, index) => ({ ...c, index })).filter(c => !narrow.matches || !c.wideOnly)
    const list = this.matching()
    const tracks = columns.map(c => c.width ?? 'minmax(0,1fr)').join(' ')
    const grid = narrow.matches ? '' : `grid-template-columns:${tracks}`
    const body = this.querySelector('.rows')
    const top = body ? -body.getBoundingClientRect().top : 0
    const many = list.length > windowThreshold
    const first = many ? Math.max(0, Math.min(list.length, Math.floor(top / rowHeight)) - 8) : 0
    const last = many ? Math.min(list.length, first + Math.ceil(innerHeight / rowHeight) + 16) : list.length
    const size = many ? `height:${list.length * rowHeight}px;padding-top:${first * rowHeight}px` : ''
    render(html`
      ${quiet ? nothing : this.tools(list.length, noun)}
      <div class="table" role="table" aria-label=${label ?? noun} aria-rowcount=${list.length + 1}>
        <div class="row head" role="row" .style=${grid}>${columns.map(c => this.header(c))}</div>
        <div class="rows" role="rowgroup" .style=${size} @keydown=${e => this.onkey(e)}>
          ${list.slice(first, last).map((r, n) => this.row(r, columns, grid, first + n))}
        </div>
        ${list.length === 0 ? this.noMatch() : nothing}
      </div>`, this)
    if (!body && many) requestAnimationFrame(() => this.draw())
  }

  setFilter(text) {
    setQuery({ [this.filterParam]: text })
  }

  tools(shown, noun) {
    const { rows, tools } = this.current
    const oninput = e => {
      this.setFilter(e.target.value)
      this.draw()
    }
    const total = count(rows.length)
    return html`
      <div class="table-tools">
        <label class="filter">
          ${icon('search', 16)}
          <input type="search" data-filter placeholder="Filter" aria-label=${`Filter ${noun}`}
            .value=${route.query.get(this.filterParam) ?? ''} @input=${oninput}>
          <kbd>/</kbd>
        </label>
        <span class="muted small" role="status">
          ${shown === rows.length ? `${total} ${noun}` : `${count(shown)} of ${total} ${noun}`}
        </span>
        ${tools ?? nothing}
      </div>`
  }

  noMatch() {
    return html`
      <p class="none">
        No row matches “${route.query.get(this.filterParam) ?? ''}”.
        <button type="button" class="link" @click=${() => this.setFilter('')}>Clear the filter</button>
      </p>`
  }

  header(c) {
    const sortable = c.text && !this.current.quiet
    const title = sortable
      ? html`<button type="button" class="sort" @click=${() => this.sortBy(c.index)}>${c.title}</button>`
      : c.title
    return html`
      <div role="columnheader" class=${c.num ? 'num' : ''} aria-sort=${this.order(c.index)}>${title}</div>`
  }

  row(r, columns, grid, n) {
    const href = this.current.href?.(r)
    const onclick = e => {
      const selecting = String(getSelection())
      if (href && !selecting && !e.target.closest('a,button,input,select')) {
        e.currentTarget.querySelector('a')?.click()
      }
    }
    const cells = narrow.matches ? columns.slice(0, 2) : columns
    const below = narrow.matches ? columns.slice(2).filter(c => c.has?.(r) ?? true) : []
    return html`
      <div role="row" aria-rowindex=${n + 2} class="row ${href ? 'to' : ''} ${this.current.rowClass?.(r) ?? ''}"
        .style=${grid} @click=${onclick}>
        ${cells.map((c, i) => html`
          <div role="cell" class=${c.num && !narrow.matches ? 'num' : ''}>${cell(c, r, i, href)}</div>`)}
        ${narrow.matches && columns.length > 2 ? html`
          <div role="cell" class="second">${below.map(c => html`
            <span>${c.labeled ? c.title.toLowerCase() + ' ' : ''}${content(c, r)}</span>`)}</div>` : nothing}
      </div>`
  }

  order(index) {
    const sort = route.query.get(this.sortParam)
    if (sort === String(index)) return 'ascending'
    return sort === '-' + index ? 'descending' : nothing
  }

  /** Sorts by a column: ascending, then descending, then not at all. */
  sortBy(index) {
    const next = { ascending: '-' + index, descending: '' }[this.order(index)] ?? String(index)
    setQuery({ [this.sortParam]: next })
  }

  /** Moves the focus between rows with the arrow keys. */
  onkey(e) {
    if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
    const row = e.target.closest('.row')
    const next = e.key === 'ArrowDown' ? row?.nextElementSibling : row?.previousElementSibling
    const a = next?.querySelector('a')
    if (!a) return
    e.preventDefault()
    a.focus()
  }
}

function filtered(rows, columns, filter) {
  const words = filter.split(/\s+/).filter(Boolean)
  if (!words.length) return rows
  return rows.filter(r => {
    const text = columns.map(c => c.text?.(r) ?? '').join(' ').toLowerCase()
    return words.every(w => text.includes(w))
  })
}

/** Sorts by the number of a column; a minus sign in front of it means descending. */
function sorted(rows, columns, sort) {
  const [, minus, index] = /^(-?)(\d+)$/.exec(sort) ?? []
  const column = columns[index]
  if (!column?.text) return rows
  const sign = minus ? -1 : 1
  const keys = new Map(rows.map(r => [r, column.num ? Number(column.text(r)) : String(column.text(r) ?? '')]))
  return [...rows].sort((a, b) => {
    const x = keys.get(a)
    const y = keys.get(b)
    return x < y ? -sign : x > y ? sign : 0
  })
}

const content = (column, row) => column.cell ? column.cell(row) : column.text(row)

function cell(column, row, i, href) {
  if (i === 0 && href) return html`<a href=${href}>${content(column, row)}</a>`
  const titled = i === 1 && narrow.matches && column.labeled
  const title = titled ? html`<span class="muted small">${column.title.toLowerCase()} </span>` : nothing
  return html`${title}${content(column, row)}`
}

customElements.define('data-table', DataTable)

export const table = data => html`<data-table .data=${data}></data-table>`
