import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Mode } from '../questions/question.ts';
import type { MeasuredModel } from './measured-model.ts';
import { ScoreFile, ScoreFileError } from './score-file.ts';

/** The folder of the files of `tds eval`, which have one name for each cases file and mode. */
export interface Workspace {
  readonly directory: string;
  readonly cases_file: string;
}

type FileKind = 'scores.jsonl' | 'json' | 'html';

/** Returns the path of one of these files. */
export function workspacePath({ directory, cases_file }: Workspace, mode: Mode, kind: FileKind): string {
  const name = basename(cases_file)
    .replace(/\.(xz|gz)$/, '')
    .replace(/\.jsonl$/, '');
  return join(directory, `${name}.${mode}.${kind}`);
}

/** Opens the file of the model's scores so far, empty at first. Throws `ScoreFileError`. */
export function openScores(
  workspace: Workspace,
  { facts }: Pick<MeasuredModel, 'facts'>,
  mode: Mode,
): ScoreFile {
  const { weights_sha256, profile, context_tokens } = facts;
  try {
    mkdirSync(workspace.directory, { recursive: true });
  } catch (error) {
    throw new ScoreFileError(
      `The folder ${workspace.directory} cannot be made: name another with --output.`,
      {
        cause: error,
      },
    );
  }
  return ScoreFile.open(workspacePath(workspace, mode, 'scores.jsonl'), {
    weights_sha256,
    profile,
    mode,
    context_tokens,
  });
}
