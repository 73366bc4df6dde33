import { newestMigration_ms } from '../../db/schema-state.ts';
import { knownMigrations } from '../../db/sqlite/migrate.ts';
import {
  checkModel,
  type DeviceStatus,
  EMBEDDED_WEIGHTS,
  type Gpu,
  type MachineStatus,
  machineStatus,
  type OpenOptions,
  SetupError,
} from '../../native/engine.ts';
import { DEFAULT_MODEL, isServed } from '../catalog/catalog.ts';
import { isPostgres, POSTGRES_BACKUPS } from '../config/database-address.ts';
import type { ModelConfig, Values } from '../config/settings.ts';
import { PROGRAM_VERSION } from '../program/build-info.ts';
import { unfitTunings } from '../served-models/unfit-tunings.ts';
import { type AuditReport, formatAudit } from '../store/audit-report.ts';
import { type CatalogModel, EMBEDDED } from '../store/catalog-records.ts';
import type { Writer } from '../store/database.ts';
import type { Records } from '../store/store.ts';
import { systemClock } from '../time/clock.ts';
import { backupDirectoryPath } from './backup-directory.ts';
import { type AskedModel, upstreamFailures } from './check-upstreams.ts';
import { clockWarning } from './clock-check.ts';
import { type JsonOptions, withData } from './command.ts';
import { CommandFailed, NoData, OlderData } from './command-failed.ts';
import { hasDatabase, whyUnfillable } from './data-directory.ts';
import { type Finding, kernelsFinding, threadsFinding } from './findings.ts';
import {
  backupsFinding,
  descriptorsFinding,
  diskFinding,
  memoryFinding,
  portFinding,
} from './machine-findings.ts';
import { formatTime, printJson, printTable } from './output.ts';

export interface DoctorOptions extends JsonOptions, ModelConfig, Values<'host' | 'port'> {
  /** The folder of scheduled backups; undefined for a folder of the data directory. */
  readonly backupDirectory: string | undefined;
}

/** A server that is loading its model takes longer, which deserves a warning. */
const UPSTREAM_WAITING_MS = 10_000;
/** How the findings about models read vocabularies. */
type VocabularyReader = Pick<ModelConfig, 'evaluator' | 'gpu'>;

/** Prints the findings; the exit code is 1 when something is broken. */
export async function runDoctor(options: DoctorOptions): Promise<void> {
  const machine = await machineStatus(options.gpu, options.evaluator);
  const reader = vocabularyReader(machine, options);
  const findings = [
    await weightsFinding('weights', { model_path: options.model, ...reader }),
    ...evaluatorFindings(machine, options),
    ...(await dataFindings(options, reader)),
    await memoryFinding(options.model),
    diskFinding(options.data),
    descriptorsFinding(),
    await portFinding(options),
  ];
  if (options.json) printJson(findings);
  else
    printTable(
      ['WHAT', 'STATE', 'DETAIL'],
      findings.map(({ subject, state, detail }) => [subject, state, detail]),
      '',
    );
  if (findings.some((finding) => finding.state === 'broken')) process.exitCode = 1;
}

/**
 * Returns the addon where it is loaded anyway, because node-llama-cpp takes a second to load. Reading a vocabulary needs
 * neither a device nor a compiler, which have findings of their own.
 */
function vocabularyReader({ addon }: MachineStatus, { gpu }: ModelConfig): VocabularyReader {
  return addon !== undefined && 'path' in addon
    ? { evaluator: 'addon', gpu }
    : { evaluator: 'llama', gpu: false };
}

/** Returns findings about the catalog's models besides the default one, open or closed. */
async function modelFindings(
  { catalog }: Pick<Records, 'catalog'>,
  config: ModelConfig,
  reader: VocabularyReader,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const model of await catalog.allModels()) {
    const { id, weights, upstreams, context_tokens, status } = model;
    if (upstreams !== null) {
      const asked = { id, upstreams, context_tokens: context_tokens ?? 1 };
      findings.push(await upstreamsFinding(asked, { ...config, ...reader }));
    }
    if (!isServed(model) || weights === null || id === DEFAULT_MODEL) continue;
    const found = await weightsFinding(`weights of ${id}`, {
      model_path: weights === EMBEDDED ? undefined : weights,
      context_tokens: context_tokens ?? undefined,
      expected: model,
      ...reader,
    });
    // A closed model refuses no request, so its failure is only a warning.
    findings.push(found.state === 'broken' && status !== 'live' ? { ...found, state: 'warning' } : found);
    if (found.state === 'ok') findings.push(...(await tuningFindings({ catalog }, model)));
  }
  return findings;
}

/** Sends each upstream a health probe, as the start does. */
async function upstreamsFinding(model: AskedModel, config: ModelConfig): Promise<Finding> {
  const failures = await upstreamFailures(model, config, UPSTREAM_WAITING_MS);
  const { id } = model;
  const { addresses } = model.upstreams;
  // The service runs without them, and the model's other upstreams may answer.
  return failures.length === 0
    ? { subject: `upstreams of ${id}`, state: 'ok', detail: `${addresses.join(', ')} answer` }
    : {
        subject: `upstreams of ${id}`,
        state: 'warning',
        // One vocabulary fails for all of them.
        detail: [...new Set(failures.map(({ message }) => message))].join(' '),
      };
}

/** Returns a finding about each open tuned model whose tuning does not fit the weights of its base. */
async function tuningFindings(
  records: Pick<Records, 'catalog'>,
  { id: base, weights_sha256, profile }: CatalogModel,
): Promise<readonly Finding[]> {
  if (weights_sha256 === null || profile === null) return [];
  return (await unfitTunings(records, base, { weights_sha256, profile })).map(({ id }) => ({
    subject: `tuning of ${id}`,
    state: 'warning',
    detail: `it was fitted on other weights than ${base} has, so that tuned questions get 502: tune again, remove it and add it again`,
  }));
}

async function weightsFinding(subject: string, options: OpenOptions): Promise<Finding> {
  try {
    const { weights_sha256 } = await checkModel(options);
    const path = options.model_path ?? EMBEDDED_WEIGHTS;
    return { subject, state: 'ok', detail: `${path}, SHA-256 ${weights_sha256}` };
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return { subject, state: 'broken', detail: error.message };
  }
}

/** Returns findings about the device, the evaluator, and the addon. */
function evaluatorFindings(
  { device, addon }: MachineStatus,
  { gpu, threads }: ModelConfig,
): readonly Finding[] {
  const devices = device === undefined ? [] : deviceFindings(device, gpu, threads);
  if (addon === undefined) return devices;
  if ('path' in addon) {
    const detail = addon.is_prebuilt ? `${addon.path}, compiled already: no compiler is needed` : addon.path;
    return [...devices, { subject: 'addon', state: 'ok', detail }];
  }
  return device === undefined
    ? [{ subject: 'addon', state: 'broken', detail: addon.unavailable }]
    : [
        ...devices,
        {
          subject: 'addon',
          state: 'slow',
          detail: `${addon.unavailable} Plans go through node-llama-cpp instead.`,
        },
      ];
}

function deviceFindings(
  status: NonNullable<MachineStatus['device']>,
  gpu: Gpu,
  threads: ModelConfig['threads'],
): readonly Finding[] {
  if ('unavailable' in status) return [{ subject: 'device', state: 'broken', detail: status.unavailable }];
  const { kernels } = status;
  const of_cpu = kernels === undefined ? [] : [kernelsFinding(kernels), threadsFinding(threads)];
  return [deviceFinding(status, gpu), ...of_cpu];
}

function deviceFinding({ device, device_name, missing_gpu }: DeviceStatus, gpu: Gpu): Finding {
  const found = device_name === undefined ? device : `${device} (${device_name})`;
  if (missing_gpu === undefined) return { subject: 'device', state: 'ok', detail: found };
  return gpu === 'auto'
    ? { subject: 'device', state: 'slow', detail: `${found}; the GPU is not used: ${missing_gpu}` }
    : { subject: 'device', state: 'broken', detail: `there is no GPU to be used: ${missing_gpu}` };
}

/**
 * Returns findings about the database, its last writer, its backups, its models, and the clock that dates its
 * rows.
 */
async function dataFindings(options: DoctorOptions, reader: VocabularyReader): Promise<readonly Finding[]> {
  const { data } = options;
  const is_file = !isPostgres(options.database);
  try {
    if (is_file && !hasDatabase(data)) return [unfilledFinding(data), clockFinding(null)];
    return await withData(
      options,
      async ({ database, store }) => [
        booksFinding(is_file ? data : database.name, await database.audit()),
        writerFinding(await database.lastWriter()),
        clockFinding({
          written_ms: await database.lastWritten_ms(),
          made_ms: database.newestMigration_ms,
        }),
        is_file
          ? backupsFinding(backupDirectoryPath(options), systemClock.now_ms())
          : { subject: 'backups', state: 'ok', detail: `not by this service: ${POSTGRES_BACKUPS}` },
        ...(await modelFindings(store, options, reader)),
      ],
      // Who asks what a version needs has not yet decided for it.
      { create: false, update: false },
    );
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [unopenedFinding(error, is_file ? data : 'PostgreSQL'), clockFinding(null)];
  }
}

function unopenedFinding(error: CommandFailed, place: string): Finding {
  const subject = 'data';
  if (error instanceof NoData)
    return { subject, state: 'ok', detail: `${place} has no data yet: the first start fills it` };
  return { subject, state: error instanceof OlderData ? 'warning' : 'broken', detail: error.message };
}

function unfilledFinding(data: string): Finding {
  const unfillable = whyUnfillable(data);
  return unfillable === null
    ? { subject: 'data', state: 'ok', detail: `${data} is empty: the first start fills it` }
    : { subject: 'data', state: 'broken', detail: unfillable };
}

function booksFinding(data: string, report: AuditReport): Finding {
  return report.ok
    ? { subject: 'data', state: 'ok', detail: `${data}, the books are right` }
    : { subject: 'data', state: 'broken', detail: formatAudit(report).trim() };
}

function writerFinding(writer: Writer | null): Finding {
  const written =
    writer === null
      ? 'by a version that did not say which'
      : `last written by version ${writer.version}, at ${formatTime(writer.last_ms)}`;
  return { subject: 'version', state: 'ok', detail: `${PROGRAM_VERSION}; the database is ${written}` };
}

/**
 * Returns the finding about the clock. `past` has times that the database knows to be past; null where none
 * was opened.
 */
function clockFinding(past: Parameters<typeof clockWarning>[1] | null): Finding {
  const now_ms = systemClock.now_ms();
  const made_ms = newestMigration_ms(knownMigrations());
  const warning = clockWarning(now_ms, past ?? { written_ms: null, made_ms });
  return warning === null
    ? { subject: 'clock', state: 'ok', detail: formatTime(now_ms) }
    : { subject: 'clock', state: 'warning', detail: warning };
}
