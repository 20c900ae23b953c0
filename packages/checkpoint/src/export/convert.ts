/** Converting: a checkpoint of any known system into another's form, under the names it has there. */
import { check, checkOptions } from "@opt/core";
import { OPEN_OPTIONS } from "../read/open";
import { SELECTION_OPTIONS } from "../read/select";
import { type ConvertOptions, type ConvertResult, TARGETS } from "./target";

const CONVERT_OPTIONS = {
  ...OPEN_OPTIONS,
  ...SELECTION_OPTIONS,
  to: "string",
  map: "object",
  parameterOrder: "any",
  exclude: "array",
  rename: "object",
  overwrite: "boolean",
  maxMemory: "number",
  crc: "boolean",
  ranks: "number",
  layout: "object",
  job: "array",
  maxShardSize: "number",
  progress: "function",
} as const;

/**
 * Writes the checkpoint at `path` (or the files that make one together: a model and its optimizer) to `destination`, parameters under their
 * names, optimizer state as `<parameter>.<state>`, so that a run begun elsewhere goes on here. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED,
 * BAD_STATE (nothing proves whose a state is), DUPLICATE (two names fall together), BAD_ARGUMENT, IO.
 */
export async function convertCheckpoint(
  path: string | readonly string[],
  destination: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  checkOptions("convertCheckpoint", options, CONVERT_OPTIONS);
  const { to } = options;
  check(
    TARGETS.includes(to),
    "BAD_ARGUMENT",
    "convertCheckpoint",
    () => `to must be one of ${TARGETS.join(", ")}, got ${to}.`,
  );
  check(
    options.parameterOrder === undefined || options.parameterOrder === "model",
    "BAD_ARGUMENT",
    "convertCheckpoint",
    () => `parameterOrder must be "model", got ${JSON.stringify(options.parameterOrder)}.`,
    "Leave it out where the order is not the model's.",
  );
  const cut = options.ranks !== undefined || options.layout !== undefined;
  check(
    (options.job === undefined || (to === "ckpt" && cut)) && (!cut || to === "ckpt" || to === "checkpoint"),
    "BAD_ARGUMENT",
    "convertCheckpoint",
    () => `ranks, layout and job are for ckpt and checkpoint, and job needs ranks, got them with ${to}.`,
    "Leave them out.",
  );
  check(
    options.maxShardSize === undefined || to === "safetensors",
    "BAD_ARGUMENT",
    "convertCheckpoint",
    () => `maxShardSize is for safetensors, got it with ${to}.`,
    "Leave it out.",
  );
  // Other systems' names and formats are much code, which a page that saves and loads does not need.
  const { convert } = await import("./conversion");
  return convert([path].flat(), destination, options);
}
