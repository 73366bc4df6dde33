import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatAudit, runAudit } from '../../db/sqlite/audit.ts';
import { servesAmx } from '../../native/amx.ts';
import { loadedCpuLibrary } from '../../native/cpu-library.ts';
import { type AvailableAddon, addonStatus } from '../../native/evaluators/addon/index.ts';
import { llamaBackend } from '../../native/evaluators/llama/backend.ts';
import { EMBEDDED_WEIGHTS, verifyWeights, WeightsError } from '../../native/weights.ts';
import type { ModelConfig } from '../config.ts';
import { type JsonOptions, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { DATABASE_FILE } from './data-directory.ts';
import { type Finding, kernelsFinding } from './findings.ts';
import { printJson, printTable } from './output.ts';

type Gpu = ModelConfig['gpu'];

/** Prints what was found; the exit code is 1 when something is broken. */
export async function runDoctor(options: JsonOptions & ModelConfig): Promise<void> {
  const findings = [
    await weightsFinding(options.model ?? EMBEDDED_WEIGHTS),
    ...(await engineFindings(options)),
    await dataFinding(options),
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

async function weightsFinding(path: string): Promise<Finding> {
  try {
    const { sha256 } = await verifyWeights(path);
    return { subject: 'weights', state: 'ok', detail: `${path}, SHA-256 ${sha256}` };
  } catch (error) {
    if (!(error instanceof WeightsError)) throw error;
    return { subject: 'weights', state: 'broken', detail: error.message };
  }
}

/** The device and what computes on it: node-llama-cpp is only asked where it is what serves. */
async function engineFindings({ gpu, evaluator }: ModelConfig): Promise<readonly Finding[]> {
  if (evaluator === 'llama') return await llamaFindings(gpu);
  const status = await addonStatus(gpu);
  if (!status.available && evaluator === 'addon') {
    return [{ subject: 'native engine', state: 'broken', detail: status.reason }];
  }
  if (!status.available) {
    const detail = `${status.reason} Plans go through node-llama-cpp instead.`;
    return [...(await llamaFindings(gpu)), { subject: 'native engine', state: 'slow', detail }];
  }
  return [
    addonDeviceFinding(status, gpu),
    ...(status.device === 'cpu' ? [cpuFinding(status)] : []),
    { subject: 'native engine', state: 'ok', detail: status.addon_path },
  ];
}

function cpuFinding(kernels: Pick<AvailableAddon, 'has_own_kernels' | 'uses_amx'>): Finding {
  const { has_own_kernels, uses_amx } = kernels;
  return kernelsFinding({ has_own_kernels, uses_amx, has_amx: servesAmx(), library: loadedCpuLibrary() });
}

function addonDeviceFinding({ device, device_name, missing_gpu }: AvailableAddon, gpu: Gpu): Finding {
  const found = `${device} (${device_name})`;
  if (missing_gpu === undefined) return { subject: 'device', state: 'ok', detail: found };
  return gpu === 'auto'
    ? { subject: 'device', state: 'slow', detail: `${found}; the GPU is not used: ${missing_gpu}` }
    : { subject: 'device', state: 'broken', detail: `there is no GPU to be used: ${missing_gpu}` };
}

async function llamaFindings(gpu: Gpu): Promise<readonly Finding[]> {
  try {
    const { device } = await llamaBackend(gpu);
    const kernels = device === 'cpu' ? [cpuFinding({ has_own_kernels: false, uses_amx: servesAmx() })] : [];
    return [{ subject: 'device', state: 'ok', detail: device }, ...kernels];
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return [{ subject: 'device', state: 'broken', detail }];
  }
}

async function dataFinding(options: JsonOptions): Promise<Finding> {
  if (!existsSync(join(options.data, DATABASE_FILE))) {
    return { subject: 'data', state: 'ok', detail: `${options.data} is empty: the first start fills it` };
  }
  try {
    const report = await withData(options, ({ db }) => runAudit(db));
    return report.ok
      ? { subject: 'data', state: 'ok', detail: `${options.data}, the books are right` }
      : { subject: 'data', state: 'broken', detail: formatAudit(report).trim() };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return { subject: 'data', state: 'broken', detail: error.message };
  }
}
