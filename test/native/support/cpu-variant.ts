import { Type } from '@sinclair/typebox';

const Tokens = Type.Array(Type.Integer());
const Plan = Type.Object({
  prefix: Tokens,
  branches: Type.Array(
    Type.Object({
      tokens: Tokens,
      reads: Type.Array(Type.Object({ index: Type.Integer(), tokens: Tokens })),
    }),
  ),
});
const Weights = Type.Object({
  first: Type.String(),
  parts: Type.Array(Type.String()),
  sha256: Type.String(),
  file_identity: Type.String(),
});

/** A model that is checked already, with the plans of its requests. */
const Model = Type.Object({ weights: Weights, requests: Type.Array(Type.Array(Plan)) });
/** The logits of each plan of each request. */
const Logits = Type.Array(Type.Array(Type.Array(Type.Array(Type.Array(Type.Number())))));
const Answers = Type.Object({ addon: Logits, llama: Logits });

/** The input of `cpu-variant-child.ts`: weights of 8 bits, and the same numbers in 32 bits. */
export const VariantWork = Type.Object({ rounded: Model, widened: Model });

/** Its output: the backends that were loaded, and the answers of both models. */
export const VariantOutput = Type.Object({
  libraries: Type.Array(Type.String()),
  rounded: Answers,
  widened: Answers,
});
