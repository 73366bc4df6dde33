/** A query of Prometheus, and the legend of its lines. */
export type Query = readonly [expression: string, legend: string];

/** Grafana's names of units. */
type Unit = 'bytes' | 'currencyUSD' | 'ops' | 'percentunit' | 'reqps' | 's' | 'short';

interface PanelOptions {
  readonly description?: string;
  /** Of the 24 columns of the page; by default as wide as the other panels of its row. */
  readonly width?: number;
  /** True piles the lines of a chart up. */
  readonly stacked?: true;
  /** The text of a number: its value, or the legend with `name`. */
  readonly text?: 'auto' | 'name';
}

interface Panel extends PanelOptions {
  readonly type: 'timeseries' | 'stat';
  readonly title: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
}

/** The panels below one heading, from left to right, line after line. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
  /** The width of a panel that has none of its own. */
  readonly width?: number;
}

const COLUMNS = 24;
const PANEL_WIDTH = 8;
const PANEL_HEIGHT = 8;
const HEADING_HEIGHT = 1;

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana writes its variables so.
const SOURCE = { type: 'prometheus', uid: '${datasource}' };

/** Returns a panel that draws lines over time. */
export function chart(title: string, unit: Unit, queries: readonly Query[], options?: PanelOptions): Panel {
  return { type: 'timeseries', title, unit, queries, ...options };
}

/** Returns a panel that shows the newest value as a number. */
export function stat(title: string, unit: Unit, queries: readonly Query[], options?: PanelOptions): Panel {
  return { type: 'stat', title, unit, queries, ...options };
}

/** Returns the document that Grafana imports, with the variables `$datasource` and `$instance` for queries. */
export function dashboardOf(
  about: { title: string; uid: string; description: string },
  rows: readonly Row[],
) {
  return {
    ...about,
    tags: ['tds'],
    schemaVersion: 39,
    version: 1,
    id: null,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    timezone: 'browser',
    time: { from: 'now-1h', to: 'now' },
    timepicker: {},
    annotations: { list: [] },
    links: [],
    templating: { list: [sourceVariable(), instanceVariable()] },
    panels: placed(rows).map((panel, index) => ({ id: index + 1, ...panel })),
  };
}

function sourceVariable() {
  return {
    name: 'datasource',
    label: 'Prometheus',
    type: 'datasource',
    query: 'prometheus',
    current: {},
    hide: 0,
    includeAll: false,
    multi: false,
    options: [],
    refresh: 1,
    regex: '',
  };
}

function instanceVariable() {
  const query = 'label_values(tds_build_info, instance)';
  return {
    name: 'instance',
    label: 'Instance',
    type: 'query',
    datasource: SOURCE,
    query: { query, refId: 'instance' },
    definition: query,
    includeAll: true,
    allValue: '.*',
    multi: true,
    current: {},
    hide: 0,
    options: [],
    refresh: 2,
    regex: '',
    sort: 1,
  };
}

/** Returns the headings and panels of all rows with their places on the page. */
function placed(rows: readonly Row[]) {
  let y = 0;
  return rows.flatMap(({ title, panels, width = PANEL_WIDTH }) => {
    const heading = {
      type: 'row',
      title,
      gridPos: { x: 0, y, w: COLUMNS, h: HEADING_HEIGHT },
      collapsed: false,
      panels: [],
    };
    y += HEADING_HEIGHT;
    let x = 0;
    const below = panels.map((panel) => {
      const w = panel.width ?? width;
      if (x + w > COLUMNS) {
        x = 0;
        y += PANEL_HEIGHT;
      }
      const gridPos = { x, y, w, h: PANEL_HEIGHT };
      x += w;
      return { ...panelOf(panel), gridPos };
    });
    y += PANEL_HEIGHT;
    return [heading, ...below];
  });
}

function panelOf({ type, title, description = '', unit, queries, stacked, text = 'auto' }: Panel) {
  const is_chart = type === 'timeseries';
  return {
    type,
    title,
    description,
    datasource: SOURCE,
    fieldConfig: {
      defaults: { unit, min: 0, ...(is_chart ? { custom: lineStyle(stacked === true) } : {}) },
      overrides: [],
    },
    options: is_chart
      ? {
          legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
          tooltip: { mode: 'multi', sort: 'desc' },
        }
      : {
          reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
          colorMode: 'value',
          graphMode: 'area',
          textMode: text,
        },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: SOURCE,
      expr,
      legendFormat,
      range: true,
    })),
  };
}

function lineStyle(is_stacked: boolean) {
  return {
    lineWidth: 1,
    fillOpacity: is_stacked ? 30 : 10,
    showPoints: 'never',
    spanNulls: false,
    stacking: { mode: is_stacked ? 'normal' : 'none', group: 'A' },
  };
}
