import { expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { grafanaDashboard } from '../../src/cli/grafana-dashboard.ts';
import { allMetrics } from '../support/metrics-reference.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana writes its variables so.
const Source = Type.Object({ type: Type.Literal('prometheus'), uid: Type.Literal('${datasource}') });

/** The fields of a dashboard that Grafana needs. */
const Dashboard = Type.Object({
  id: Type.Null(),
  uid: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,40}$' }),
  title: Type.String({ minLength: 1 }),
  schemaVersion: Type.Integer({ minimum: 36 }),
  time: Type.Object({ from: Type.String(), to: Type.String() }),
  templating: Type.Object({
    list: Type.Array(Type.Object({ name: Type.String(), type: Type.String() })),
  }),
  panels: Type.Array(
    Type.Object({
      id: Type.Integer({ minimum: 1 }),
      type: Type.Union(['row', 'timeseries', 'stat'].map((type) => Type.Literal(type))),
      title: Type.String({ minLength: 1 }),
      gridPos: Type.Object({
        x: Type.Integer({ minimum: 0 }),
        y: Type.Integer({ minimum: 0 }),
        w: Type.Integer({ minimum: 1, maximum: 24 }),
        h: Type.Integer({ minimum: 1 }),
      }),
      datasource: Type.Optional(Source),
      targets: Type.Optional(
        Type.Array(
          Type.Object({
            refId: Type.String({ minLength: 1 }),
            expr: Type.String({ minLength: 1 }),
            datasource: Source,
          }),
          { minItems: 1 },
        ),
      ),
    }),
  ),
});

/** The names of metrics in a query. */
function metricsOf(query: string): readonly string[] {
  return query.match(/\b(?:tds|process)_[a-z_]+/g) ?? [];
}

function family(name: string): string {
  return name.replace(/_(seconds|tokens)_(bucket|sum|count)$/, '_$1');
}

const dashboard = grafanaDashboard();

const queries = dashboard.panels
  .flatMap((panel) => ('targets' in panel ? panel.targets : []))
  .map(({ expr }) => expr);

test('has what Grafana needs of a dashboard', () => {
  expect([...Value.Errors(Dashboard, dashboard)]).toEqual([]);
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, taken.has(`${x},${y}`)]).toEqual([title, false]);
        taken.add(`${x},${y}`);
      }
    }
  }
  for (const panel of dashboard.panels) {
    expect([panel.title, 'targets' in panel]).toEqual([panel.title, panel.type !== 'row']);
    if (!('targets' in panel)) continue;
    const names = panel.targets.map(({ refId }) => refId);
    expect(new Set(names).size).toBe(names.length);
  }
});

test('its queries use the variables that it has, and have as many opened as closed brackets', () => {
  const variables = new Set(dashboard.templating.list.map(({ name }) => name));
  for (const query of queries) {
    const used = [...query.matchAll(/\$(\w+)/g)].map(([, name]) => name ?? '');
    expect(used.filter((name) => name !== '__rate_interval' && !variables.has(name))).toEqual([]);
    for (const [opened, closed] of ['()', '{}', '[]']) {
      expect(query.split(opened ?? '').length).toBe(query.split(closed ?? '').length);
    }
  }
});

test('it names metrics that the service exports, and every one of them', () => {
  const exported = new Set(allMetrics().map(({ name }) => name));
  const shown = new Set(queries.flatMap(metricsOf).map(family));
  expect([...shown].filter((name) => !exported.has(name))).toEqual([]);
  expect([...exported].filter((name) => !shown.has(name))).toEqual([]);
});
