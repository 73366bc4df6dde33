import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatAudit, runAudit } from '../../db/sqlite/audit.ts';
import {
  type DeviceStatus,
  EMBEDDED_WEIGHTS,
  type EngineStatus,
  engineStatus,
  type Gpu,
  verifyWeights,
  WeightsError,
} from '../../native/engine.ts';
import type { ModelConfig } from '../config/settings.ts';
import { type JsonOptions, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { DATABASE_FILE } from './data-directory.ts';
import { type Finding, kernelsFinding } from './findings.ts';
import { printJson, printTable } from './output.ts';

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

/** The device, what computes on it, and the addon. */
async function engineFindings({ gpu, evaluator }: ModelConfig): Promise<readonly Finding[]> {
  const { device, addon } = await engineStatus(gpu, evaluator);
  const devices = device === undefined ? [] : deviceFindings(device, gpu);
  if (addon === undefined) return devices;
  if ('path' in addon) {
    const detail = addon.is_prebuilt ? `${addon.path}, compiled already: no compiler is needed` : addon.path;
    return [...devices, { subject: 'native engine', state: 'ok', detail }];
  }
  return device === undefined
    ? [{ subject: 'native engine', state: 'broken', detail: addon.unavailable }]
    : [
        ...devices,
        {
          subject: 'native engine',
          state: 'slow',
          detail: `${addon.unavailable} Plans go through node-llama-cpp instead.`,
        },
      ];
}

function deviceFindings(status: NonNullable<EngineStatus['device']>, gpu: Gpu): readonly Finding[] {
  if ('unavailable' in status) return [{ subject: 'device', state: 'broken', detail: status.unavailable }];
  const { kernels } = status;
  return [deviceFinding(status, gpu), ...(kernels === undefined ? [] : [kernelsFinding(kernels)])];
}

function deviceFinding({ device, device_name, missing_gpu }: DeviceStatus, gpu: Gpu): Finding {
  const found = device_name === undefined ? device : `${device} (${device_name})`;
  if (missing_gpu === undefined) return { subject: 'device', state: 'ok', detail: found };
  return gpu === 'auto'
    ? { subject: 'device', state: 'slow', detail: `${found}; the GPU is not used: ${missing_gpu}` }
    : { subject: 'device', state: 'broken', detail: `there is no GPU to be used: ${missing_gpu}` };
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
