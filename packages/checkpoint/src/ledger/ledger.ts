/** A ledger: one line a step with the checksum of each tensor. Two runs with equal ledgers had the same bits at every step. */
import { checkOptions, OptError } from "@opt/core";
import { crc32, crcText } from "../format/crc32";
import { readWhole } from "../format/source";
import { localTensors, type SavedTensor } from "../format/tensors";
import { checkedStep } from "../layout/counts";
import { outputOf } from "../platform/local";
import { checkedPath, diskError, type FileSystem } from "../stores/file-system";
import type { LedgerLine, LedgerValue } from "./compare";

/** A run of a million steps and a hundred tensors has less. */
const LONGEST = 2 ** 31;

export interface LedgerOptions {
  readonly fileSystem?: FileSystem;
}

export interface Ledger {
  /** The lines of this run, or of the file before it, by step. */
  readonly lines: readonly LedgerLine[];
  /**
   * Adds the line of a step, and writes it to the file. A step that is there is replaced, so a resumed run can go over old steps again.
   * `values` are counters and the like, which are compared as they are.
   * @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, IO
   */
  append(
    step: number,
    tensors: Readonly<Record<string, SavedTensor>>,
    values?: LedgerLine["values"],
  ): Promise<LedgerLine>;
}

/** See `ledger` in operations.ts. */
export async function ledger(path?: string, options: LedgerOptions = {}): Promise<Ledger> {
  checkOptions("ledger", options, { fileSystem: "object" });
  if (path === undefined) return new Book([], async () => {});
  const fileSystem = outputOf(path, options.fileSystem);
  const file = await fileOf(fileSystem, path);
  const before = await bytesOf(fileSystem, file);
  const lines = linesOf(new TextDecoder().decode(before), file);
  // A bucket can't append: there each line writes the whole file again.
  const isRewritten = fileSystem.unfinished !== undefined;
  let end = before.length;
  let written = before;
  return new Book(lines, async (line) => {
    const added = new TextEncoder().encode(`${line}\n`);
    if (isRewritten) written = Uint8Array.from([...written, ...added]);
    try {
      if (end === 0) await fileSystem.makeFolder(file.slice(0, Math.max(file.lastIndexOf("/"), 1)));
      const open = await fileSystem.open(file, end === 0 || isRewritten ? "create" : "update", end + added.length);
      await (isRewritten ? open.write(written, 0) : open.write(added, end))
        .then(() => open.finish())
        .finally(() => open.close());
    } catch (error) {
      throw diskError(error, file, "writing the ledger");
    }
    end += added.length;
  });
}

class Book implements Ledger {
  readonly #byStep: Map<number, LedgerLine>;

  constructor(
    lines: readonly LedgerLine[],
    private readonly write: (line: string) => Promise<void>,
  ) {
    this.#byStep = new Map(lines.map((line) => [line.step, line]));
  }

  get lines(): readonly LedgerLine[] {
    return [...this.#byStep.values()].sort((a, b) => a.step - b.step);
  }

  async append(
    step: number,
    tensors: Readonly<Record<string, SavedTensor>>,
    values?: LedgerLine["values"],
  ): Promise<LedgerLine> {
    checkedStep("ledger", step);
    const sums: Record<string, string> = {};
    for (const { name, dtype, shape, boxes, bytes } of localTensors(tensors, "ledger")) {
      let sum = crc32(new TextEncoder().encode(`${dtype} ${shape}`));
      for (let box = 0; box < (boxes?.length ?? 1); box++) sum = crc32(await bytes(box), sum);
      sums[name] = crcText(sum);
    }
    const line = { step, tensors: sums, ...(values && { values }) };
    await this.write(JSON.stringify(line));
    this.#byStep.set(step, line);
    return line;
  }
}

async function fileOf(fileSystem: FileSystem, path: string): Promise<string> {
  const place = fileSystem.resolve(checkedPath("ledger", path));
  const isFile = /\.jsonl?$/.test(place) || (await fileSystem.kind(place)) === "file";
  return isFile ? place : `${place}/ledger.jsonl`;
}

async function bytesOf(fileSystem: FileSystem, file: string): Promise<Uint8Array> {
  return (await fileSystem.kind(file)) === undefined ? new Uint8Array() : readWhole(fileSystem, file, LONGEST);
}

function linesOf(text: string, file: string): LedgerLine[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line, i) => {
      try {
        const { step, tensors, values } = JSON.parse(line) as LedgerLine;
        const arePlain = Object.values(values ?? {}).every((value: LedgerValue) => Object(value) !== value);
        if (Number.isSafeInteger(step) && Object.values(tensors).every((sum) => /^[0-9a-f]{8}$/.test(sum)) && arePlain)
          return { step, tensors, ...(values && { values }) };
      } catch {
        // reported below
      }
      throw new OptError("CORRUPT", file, `line ${i + 1} must be a step of a ledger.`, "Delete the line.");
    });
}
