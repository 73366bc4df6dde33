import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Mode } from '../questions/question.ts';
import type { MeasuredModel } from './measured-model.ts';
import { ScoreFile, ScoreFileError } from './score-file.ts';

/** Where the files of `tds eval` lie: one folder, and one name for each cases file and mode. */
export interface Workspace {
  readonly directory: string;
  readonly cases_file: string;
}

type FileKind = 'scores.jsonl' | 'json' | 'html';

/** The path of one of these files. */
export function workspacePath({ directory, cases_file }: Workspace, mode: Mode, kind: FileKind): string {
  const name = basename(cases_file)
    .replace(/\.(xz|gz)$/, '')
    .replace(/\.jsonl$/, '');
  return join(directory, `${name}.${mode}.${kind}`);
}

/** The scores that the model has given so far; an empty file at first. Throws `ScoreFileError`. */
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
