/** Errors about files of other systems: what is wrong, then what to do about it. */
import { OptError } from "@opt/core";

export function corrupt(path: string, problem: string, advice = "The file is damaged: use an intact copy."): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, advice);
}

export function unsupported(path: string, problem: string, advice = "Save it as dense tensors of plain numbers.") {
  return new OptError("UNSUPPORTED", path, `${problem}.`, advice);
}

export function missing(path: string, problem: string, advice = "Copy all files of the checkpoint again."): OptError {
  return new OptError("MISSING", path, `${problem}.`, advice);
}

export function duplicate(path: string, problem: string, advice = "Rename one."): OptError {
  return new OptError("DUPLICATE", path, `${problem}.`, advice);
}

export function badState(path: string, problem: string, advice = "The files are of different runs."): OptError {
  return new OptError("BAD_STATE", path, `${problem}.`, advice);
}

/** The beginning of a text that a file gives, for messages. */
export function quoted(text: unknown, longest = 50): string {
  return JSON.stringify(String(text).slice(0, longest));
}
