/** The codes of Opt's errors. Programs branch on these; the words of a message may change. */
export type ErrorCode =
  | "BAD_ARGUMENT" // an option or argument is out of its range or of the wrong kind
  | "BAD_SHAPE" // shapes do not fit each other or the data
  | "BAD_DTYPE" // the element type does not fit the operation
  | "BAD_STATE" // a state dict, schedule state or checkpoint does not fit what it is loaded into
  | "DUPLICATE" // a parameter or name occurs twice
  | "NO_GRADIENT" // the operation needs a gradient or a tape that is not there
  | "CHANGED" // a tensor that backward needs was overwritten after the forward computation
  | "NOT_FINITE" // NaN or infinity where the caller asked to be told
  | "NOT_SYNC" // the device cannot answer without waiting: use the async form
  | "DISPOSED" // the tensor was freed
  | "UNKNOWN_DEVICE" // no backend of that name is registered
  | "DEVICE_UNAVAILABLE" // the backend is registered but does not open here
  | "DEVICE_MISMATCH" // operands live on different devices
  | "DEVICE_LOST" // the device went away
  | "DEVICE_ERROR" // the device or its driver reported a failure
  | "OUT_OF_MEMORY"
  | "UNSUPPORTED" // the device has no kernel for this
  | "CORRUPT" // stored bytes do not match their checksum or format
  | "MISSING" // a file, tensor or part of one is not there
  | "REFUSED" // content that could be dangerous (unknown pickle globals, paths that escape)
  | "IO" // the file system said no
  | "INTERNAL"; // a bug of ours

/**
 * The error that every Opt package throws. Message: `[where] rule broken, got value. What to do.`
 *
 * @example
 * try { new Adam([w], { lr: -1 }); } catch (error) { if (error instanceof OptError) error.code; } // "BAD_ARGUMENT"
 */
export class OptError extends Error {
  readonly code: ErrorCode;
  /** Who throws: a class, function, kernel or file. */
  readonly where: string;

  constructor(code: ErrorCode, where: string, problem: string, advice = "", options?: { cause?: unknown }) {
    super(`[${where}] ${problem}${advice === "" ? "" : ` ${advice}`}`, options);
    this.name = "OptError";
    this.code = code;
    this.where = where;
  }
}

/**
 * Throws an OptError unless `condition` holds. `problem` is only called then.
 *
 * @example
 * const rate = 0.5;
 * check(rate >= 0, "BAD_ARGUMENT", "Dropout", () => `p must be >= 0, got ${rate}.`, "For example 0.5.");
 */
export function check(
  condition: unknown,
  code: ErrorCode,
  where: string,
  problem: () => string,
  advice = "",
): asserts condition {
  if (!condition) throw new OptError(code, where, problem(), advice);
}

/** A bug of ours: a state that no input should reach. */
export function internalError(where: string, problem: string): OptError {
  return new OptError("INTERNAL", where, problem, "Please report this: it is a bug in Opt.");
}
