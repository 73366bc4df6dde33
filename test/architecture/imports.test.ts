import { beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { scripts } from '../../package.json' with { type: 'json' };
import {
  importCycles,
  importsOf,
  ROOT,
  reachedFiles,
  readSourceFiles,
  type SourceFile,
  startedPrograms,
} from './source-files.ts';

/** Where the service, its executable and the console's pages start; `package.json` names the programs that are run by hand. */
const ENTRY_POINTS = [
  'src/main.ts',
  'src/binary/launcher.ts',
  'src/console/pages/main.tsx',
  'db/sqlite/drizzle.config.ts',
  'db/postgres/drizzle.config.ts',
  ...scriptsOf(scripts),
];

/** The kit of the console's pages: a component may stand ready before a page needs it, and the gallery shows each. */
const COMPONENTS = 'src/console/pages/components/';
const GALLERY = 'test/console/gallery/gallery.tsx';

/** No I/O and no rules: imported by everybody. */
const PURE = [
  'src/contract/',
  'src/questions/',
  'src/json/',
  'src/hashing/',
  'src/tuning/',
  'src/time/',
  'src/errors/',
  'src/files/',
];
/** The version, commit, packages and licenses of this program. These files read files, and know no rules. */
const MADE_OF = ['src/program/'];
/**
 * The rules, and the ports that the database implements, lowest first: a room imports those before it. `src/store/` has
 * all interfaces of the database.
 */
const RULES = [
  'src/problems/',
  'src/log/',
  'src/scheduling/',
  'src/limits/',
  'src/store/',
  'src/access/',
  'src/audit-log/',
  'src/alerts/',
  'src/idempotency/',
  'src/ledger/',
  'src/usage/',
  'src/catalog/',
  'src/accounts/',
  'src/payments/',
  'src/served-models/',
  'src/observability/',
  'src/maintenance/',
];
/** Models behind inference servers. */
const UPSTREAMS = ['src/upstreams/'];
const DECISIONS = ['src/decisions/'];
/** The documents at `/docs`, and the page of the API reference. */
const DOCUMENTS = ['src/docs/'];
/** The tools of agents. */
const AGENTS = ['src/mcp/'];
const EVAL = ['src/eval/'];
const HTTP = ['src/http/'];
/** The web console: its API, its files and who signs in. */
const CONSOLE = [
  'src/console/api/',
  'src/console/people/',
  'src/console/console.ts',
  'src/console/bundle.ts',
];
/** Code that runs in the browser. */
const PAGES = ['src/console/pages/'];
/** Settings as they are given to a command. */
const SETTINGS = ['src/config/'];
/** The composition root. */
const WIRING = ['src/service.ts'];
const COMMANDS = ['src/cli/'];
/** Packs the program into an executable, and starts it from there. */
const BINARY = ['src/binary/'];
/** All that `src/` sees of `native/`. */
const ENGINE = ['native/engine.ts'];

interface Direction {
  readonly files: readonly string[];
  readonly may_import: readonly string[];
}

/** `http → decisions → ports ← db, native`: what the files of each layer may import outside of their own layer. */
const DIRECTIONS: readonly Direction[] = [
  { files: ['src/main.ts'], may_import: [...COMMANDS, ...RULES, ...PURE] },
  {
    files: COMMANDS,
    may_import: [
      ...WIRING,
      ...SETTINGS,
      ...HTTP,
      ...CONSOLE,
      ...EVAL,
      ...AGENTS,
      ...UPSTREAMS,
      ...DECISIONS,
      ...RULES,
      ...MADE_OF,
      ...PURE,
      ...ENGINE,
      'db/',
    ],
  },
  {
    files: WIRING,
    may_import: [...SETTINGS, ...HTTP, ...CONSOLE, ...UPSTREAMS, ...DECISIONS, ...RULES, ...PURE, ...ENGINE],
  },
  { files: SETTINGS, may_import: [...RULES, ...PURE, ...ENGINE] },
  { files: HTTP, may_import: [...DOCUMENTS, ...AGENTS, ...DECISIONS, ...RULES, ...PURE] },
  { files: DOCUMENTS, may_import: [...RULES, ...PURE] },
  { files: AGENTS, may_import: [...DECISIONS, ...PURE] },
  { files: CONSOLE, may_import: [...HTTP, ...DECISIONS, ...RULES, ...PURE] },
  {
    files: PAGES,
    may_import: [
      'src/console/api/',
      'src/contract/roles.ts',
      'src/decisions/batch/answer-columns.ts',
      'src/decisions/batch/ending.ts',
      'src/decisions/batch/table.ts',
      'src/errors/errors.ts',
      'src/eval/abstaining.ts',
      'src/eval/confusion-matrix.ts',
      'src/eval/label.ts',
      'src/eval/metrics.ts',
      'src/eval/predictions.ts',
      'src/eval/random.ts',
      'src/eval/wilson-interval.ts',
      'src/tuning/',
      'src/questions/',
      'src/hashing/',
      'src/json/',
      'src/contract/money.ts',
      'src/time/clock.ts',
      'src/time/days.ts',
      'src/audit-log/actions.ts',
      'src/alerts/sentences.ts',
      'src/usage/csv.ts',
      'src/usage/export-rows-max.ts',
      'src/store/groupings.ts',
    ],
  },
  { files: EVAL, may_import: [...DECISIONS, ...PURE, ...ENGINE] },
  { files: UPSTREAMS, may_import: [...RULES, ...PURE, ...ENGINE] },
  { files: DECISIONS, may_import: [...RULES, ...PURE, ...ENGINE] },
  { files: RULES, may_import: [...PURE, ...ENGINE] },
  { files: BINARY, may_import: [...MADE_OF, ...PURE, ...ENGINE, 'src/console/bundle.ts'] },
  { files: MADE_OF, may_import: [...PURE] },
  { files: PURE, may_import: [] },
  { files: ['db/'], may_import: [...RULES, ...PURE] },
  {
    files: ['native/'],
    may_import: [
      'src/questions/',
      'src/json/',
      'src/hashing/',
      'src/errors/error-message.ts',
      'src/errors/system-error-code.ts',
      'src/files/project-root.ts',
    ],
  },
];

/** Packages that only one layer knows. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@elysiajs/eden': PAGES,
  '@opentelemetry': ['src/observability/otlp-tracing.ts'],
  '@preact/signals': PAGES,
  'better-auth': ['db/', 'src/store/database.ts', 'src/console/people/', 'src/console/console.ts'],
  'bun:sqlite': ['db/', 'src/binary/in-use.ts'],
  'drizzle-orm': ['db/'],
  elysia: [...HTTP, ...CONSOLE],
  'node-llama-cpp': ['native/'],
  nodemailer: ['src/console/people/'],
  preact: PAGES,
  'prom-client': ['src/observability/'],
  uplot: PAGES,
};

let files: ReadonlyMap<string, SourceFile>;
beforeAll(async () => {
  files = await readSourceFiles();
});

describe('the reader of imports', () => {
  test('finds every way of importing, and none in a string or a comment', () => {
    const text = `#!/usr/bin/env bun
      // import './comment.ts';
      import './effect.ts';
      import { a } from './value.ts';
      import one, { type B } from './types-in-braces.ts';
import type { C } from './type.ts';
import {
  type D,
  type E,
} from './types-on-lines.ts';
import type F from './type-default.ts';
export type { G } from './exported-type.ts';
export * from './everything.ts';
export type H = typeof a;
const i = await import('./dynamic.ts');
const j = \`import { no } from './string.ts'\`;`;
    expect(new Set(importsOf(text))).toEqual(
      new Set([
        './effect.ts',
        './value.ts',
        './types-in-braces.ts',
        './type.ts',
        './types-on-lines.ts',
        './type-default.ts',
        './exported-type.ts',
        './everything.ts',
        './dynamic.ts',
      ]),
    );
  });

  test('finds workers and child processes by the names of their files', () => {
    const text = `new Worker(new URL('copy-worker.ts', import.meta.url)); join(import.meta.dir, 'kill-child.ts'); workerScript('db/log-worker.ts')`;
    expect(startedPrograms(text)).toEqual(['copy-worker.ts', 'kill-child.ts', 'log-worker.ts']);
  });

  test('finds a cycle of any length once, and every file that is needed', () => {
    const file = (path: string, ...imports: readonly string[]): [string, SourceFile] => [
      path,
      { path, imports, value_imports: imports, packages: [], starts: [] },
    ];
    const cyclic = new Map([file('a', 'b', 'd'), file('b', 'c'), file('c', 'a'), file('d'), file('e', 'd')]);
    expect(importCycles(cyclic)).toEqual([['a', 'b', 'c', 'a']]);
    expect(reachedFiles(cyclic, ['b'])).toEqual(new Set(['b', 'c', 'a', 'd']));
  });

  test('finds a file for every import', () => {
    const missing = [...files.values()].flatMap(({ path, imports }) =>
      imports.filter((other) => !files.has(other)).map((other) => `${path} → ${other}`),
    );
    expect(missing).toEqual([]);
  });
});

test('no files import each other, neither directly nor in a longer cycle', () => {
  expect(importCycles(files).map((cycle) => cycle.join(' → '))).toEqual([]);
});

test('the two databases know nothing of each other, and what they share knows neither', () => {
  const of_one = (path: string) => /^db\/(sqlite|postgres)\//.exec(path)?.[0];
  const shares = (path: string) => path.startsWith('db/records/') || path === 'db/tables.ts';
  const wrong = [...files.values()].flatMap(({ path, imports }) =>
    imports
      .filter(
        (other) =>
          of_one(other) !== undefined &&
          (shares(path) || (of_one(path) !== undefined && of_one(path) !== of_one(other))),
      )
      .map((other) => `${path} → ${other}`),
  );
  expect(wrong).toEqual([]);
});

test('the pages take nothing but types of the API, so that no code of the server reaches a browser', () => {
  const wrong = [...files.values()].flatMap(({ path, value_imports }) =>
    isIn(PAGES, path)
      ? value_imports.filter((other) => isIn(CONSOLE, other)).map((other) => `${path} → ${other}`)
      : [],
  );
  expect(wrong).toEqual([]);
});

test('the ports of the decisions are interfaces, so that a part can be replaced without its class', async () => {
  const ports = 'src/decisions/ports.ts';
  const named = await Bun.file(join(ROOT, ports)).text();
  const classes = await Promise.all(
    (files.get(ports)?.imports ?? []).map(async (path) => {
      const text = await Bun.file(join(ROOT, path)).text();
      return [...text.matchAll(/^export (?:abstract )?class (\w+)/gm)].map(([, name = '']) => name);
    }),
  );
  expect(classes.flat()).toContain('KeyDirectory');
  expect(classes.flat().filter((name) => new RegExp(`\\b${name}\\b`).test(named))).toEqual([]);
});

describe('no file is imported by nobody', () => {
  const isProgramByHand = (path: string) => /^bench\/[^/]+\.ts$/.test(path);
  const isTest = (path: string) => path.startsWith('test/') && path.endsWith('.test.ts');

  test('the entry points are there', () => {
    expect(ENTRY_POINTS.filter((path) => !files.has(path))).toEqual([]);
  });

  test('of the service: what only tests and benches need is not in its folders', () => {
    const components = [...files.keys()].filter((path) => path.startsWith(COMPONENTS));
    const reached = reachedFiles(files, [...ENTRY_POINTS, ...components]);
    const left = [...files.keys()].filter((path) => /^(src|db|native)\//.test(path) && !reached.has(path));
    expect(left.sort()).toEqual([]);
  });

  test('of tests and benches', () => {
    const entries = [...files.keys()].filter((path) => isTest(path) || isProgramByHand(path));
    const reached = reachedFiles(files, [...ENTRY_POINTS, GALLERY, ...entries]);
    expect([...files.keys()].filter((path) => !reached.has(path)).sort()).toEqual([]);
  });
});

describe('imports point one way', () => {
  test('every file of the service is in exactly one layer', () => {
    const misplaced = [...files.keys()].filter(
      (path) =>
        /^(src|db|native)\//.test(path) &&
        DIRECTIONS.filter(({ files: layer }) => isIn(layer, path)).length !== 1,
    );
    expect(misplaced).toEqual([]);
  });

  test.each(DIRECTIONS.map((direction) => [direction.files.join(', '), direction] as const))(
    '%s',
    (_, { files: layer, may_import }) => {
      const wrong = [...files.values()].flatMap(({ path, imports }) =>
        isIn(layer, path)
          ? imports
              .filter((other) => !isIn([...layer, ...may_import], other))
              .map((other) => `${path} → ${other}`)
          : [],
      );
      expect(wrong.sort()).toEqual([]);
    },
  );

  test('no arrow points up among the rules', () => {
    const rank = (path: string) => RULES.findIndex((room) => isIn([room], path));
    const wrong = [...files.values()].flatMap(({ path, imports }) =>
      rank(path) < 0
        ? []
        : imports.filter((other) => rank(other) > rank(path)).map((other) => `${path} → ${other}`),
    );
    expect(wrong.sort()).toEqual([]);
  });

  test.each(Object.entries(PACKAGES))('only one layer imports %s', (name, layer) => {
    const wrong = [...files.values()].filter(
      ({ path, packages }) =>
        /^(src|db|native)\//.test(path) &&
        !isIn(layer, path) &&
        packages.some((other) => other === name || other.startsWith(`${name}/`)),
    );
    expect(wrong.map(({ path }) => path).sort()).toEqual([]);
  });
});

/** Returns true if the path is one of the files, or in one of the folders, which end in a slash. */
function isIn(layer: readonly string[], path: string): boolean {
  return layer.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place));
}

/** The files of TypeScript in the commands of `package.json`. */
function scriptsOf(commands: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(commands)
    .flatMap((command) => command.split(/\s+/))
    .filter((word) => word.endsWith('.ts') && !word.endsWith('.test.ts'));
}
