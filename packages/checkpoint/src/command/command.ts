/** The `opt-checkpoint` command. Exit codes: 0 done, 1 the data says no, 2 wrong usage. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { OptError } from "@opt/core";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import type { ConvertTarget } from "../formats/convert";
import { convertCheckpoint } from "../formats/convert";
import type { Layout } from "../layout/layout";
import { compareLedgers, type Ledger, type LedgerDifference, type LedgerLine, ledger } from "../ledger/ledger";
import { localFileSystem } from "../platform/local";
import { type DiffResult, diffCheckpoints } from "../read/diff";
import { type Inspection, inspectCheckpoint } from "../read/inspect";
import { mergeCheckpoint } from "../read/merge";
import { reshardCheckpoint } from "../read/reshard";
import { type VerifyResult, verifyCheckpoint } from "../read/verify";
import { type CleanResult, cleanCheckpoints } from "../save/step/clean";
import { formatBytes, type Output, parseBytes, table, withBar } from "./output";
import { placeOf, placesOf } from "./place";

const SIZE_HELP = "most memory for buffers, e.g. 64MiB";

const SOURCE_LAYOUT_HELP = "JSON as for --layout: how the ranks that wrote MindSpore files held them";

/** Runs the command line given without the program's own name, and returns the exit code. */
export async function runCommand(args: readonly string[], output: Output): Promise<number> {
  let code = 0;
  const program = build(output, (exit) => {
    code = exit;
  });
  try {
    await program.parseAsync(args.length === 0 ? ["--help"] : [...args], { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!(error instanceof OptError)) throw error;
    output.error(`${oneLine(error.message).replace("overwrite: true", "--overwrite")}\n`);
    return error.code === "BAD_ARGUMENT" ? 2 : 1;
  }
}

/** By the package's own name: from source, as built and in a bundle the way to the file differs. */
function versionOf(): string {
  return createRequire(import.meta.url)("@opt/checkpoint/package.json").version;
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ");
}

function build(output: Output, exit: (code: number) => void): Command {
  const program = new Command("opt-checkpoint")
    .description("Sharded checkpoints: look at, verify, merge, re-slice, compare and convert them.")
    .version(versionOf(), "--version", "print the version")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: (text) => output.error(`${oneLine(text.trim())}\n`) })
    .showHelpAfterError(false);
  const add = (name: string, summary: string, examples: readonly string[]) =>
    program
      .command(name)
      .description(summary)
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  $ opt-checkpoint ${example}`).join("\n")}\n`)
      .option("--json", "print JSON for machines");
  const print = (asJson: boolean | undefined, result: unknown, text: () => string) =>
    output.out(`${asJson ? JSON.stringify(result, null, 2) : text()}\n`);

  add("inspect <path>", "Show what a checkpoint of any known format holds.", [
    "inspect runs/a",
    "inspect model.safetensors --json",
  ])
    .option("--step <n>", "a step of a run's folder; the latest without it", parseCount)
    .action(async (path: string, options: { json?: boolean; step?: number }) => {
      const { path: at, fileSystem } = await placeOf(path);
      const inspection = await inspectCheckpoint(at, { ...stepOf(options), ...given({ fileSystem }) });
      print(options.json, inspection, () => showInspection(inspection));
    });

  add("verify <path>", "Read every byte and compare checksums. Exit 1 names each bad tensor, file and byte range.", [
    "verify runs/a",
  ])
    .option("--step <n>", "a step of a run's folder; the latest without it", parseCount)
    .action(async (path: string, options: { json?: boolean; step?: number }) => {
      const { path: at, fileSystem } = await placeOf(path);
      const result = await withBar(output, (progress) =>
        verifyCheckpoint(at, { ...stepOf(options), ...given({ fileSystem, progress }) }),
      );
      if (!result.ok) exit(1);
      if (options.json) output.out(`${JSON.stringify(result, null, 2)}\n`);
      else if (result.ok) output.out(`${showVerified(result)}\n`);
      else for (const line of showProblems(result)) output.error(`${line}\n`);
    });

  add("merge <path>", "Join all slices into one safetensors file of whole tensors.", [
    "merge runs/a --out model.safetensors",
    "merge s3://training/runs/a --out model.safetensors",
    "merge runs/a --out model.safetensors --max-memory 64MiB --dtype bf16 --names 'model.*'",
  ])
    .requiredOption("--out <file>", "the file to write")
    .option("--step <n>", "a step of a run's folder; the latest without it", parseCount)
    .option("--max-memory <size>", SIZE_HELP, parseSize)
    .option("--names <patterns...>", "only these tensors; * stands for anything")
    .option("--dtype <dtype>", "convert every tensor, e.g. bf16")
    .option("--source-layout <file>", SOURCE_LAYOUT_HELP)
    .action(async (path: string, options: MergeFlags & { out: string }) => {
      const sourceLayout = await layoutIn(options.sourceLayout);
      const stores = await fromAndTo(path, options.out);
      const result = await withBar(output, (progress) =>
        mergeCheckpoint(stores.path, stores.out, {
          ...selectionOf(options),
          ...stores.options,
          ...given({ sourceLayout, progress }),
        }),
      );
      print(options.json, result, () => `${result.path}: ${result.tensors} tensors, ${formatBytes(result.byteLength)}`);
    });

  add("reshard <path>", "Slice a checkpoint anew for another number of ranks or another layout.", [
    "reshard runs/a --out runs/b --ranks 2",
    "reshard runs/a --out runs/b --layout layout.json --max-memory 64MiB",
  ])
    .requiredOption("--out <folder>", "the run's folder to write the step into")
    .option("--ranks <n>", "number of ranks; may be left out with --layout", parseCount)
    .option("--layout <file>", "JSON: { mesh: { shape, axes }, tensors: { pattern: split } }")
    .option("--step <n>", "a step of a run's folder; the latest without it", parseCount)
    .option("--max-memory <size>", SIZE_HELP, parseSize)
    .option("--names <patterns...>", "only these tensors; * stands for anything")
    .option("--dtype <dtype>", "convert every tensor, e.g. bf16")
    .option("--source-layout <file>", SOURCE_LAYOUT_HELP)
    .option("--overwrite", "replace the step if it exists")
    .action(
      async (
        path: string,
        options: MergeFlags & { out: string; ranks?: number; layout?: string; overwrite?: boolean },
      ) => {
        const { ranks, overwrite } = options;
        if (ranks === undefined && options.layout === undefined) {
          throw new OptError(
            "BAD_ARGUMENT",
            "reshard",
            "--ranks or --layout is needed, got neither.",
            "For example --ranks 2.",
          );
        }
        const layout = await layoutIn(options.layout);
        const sourceLayout = await layoutIn(options.sourceLayout);
        const stores = await fromAndTo(path, options.out);
        const result = await withBar(output, (progress) =>
          reshardCheckpoint(stores.path, stores.out, {
            ...selectionOf(options),
            ...stores.options,
            ...given({ ranks, layout, sourceLayout, overwrite, progress }),
          }),
        );
        print(options.json, result, () => `${result.path}: ${result.ranks} ranks`);
      },
    );

  add("diff <a> <b>", "Compare two checkpoints. Exit 1 names each tensor that differs.", [
    "diff runs/a runs/b",
    "diff a.safetensors b.pt --rtol 1e-5",
  ])
    .option("--atol <x>", "absolute tolerance", parseTolerance)
    .option("--rtol <y>", "relative tolerance", parseTolerance)
    .option("--names <patterns...>", "only these tensors; * stands for anything")
    .action(
      async (a: string, b: string, options: { json?: boolean; atol?: number; rtol?: number; names?: string[] }) => {
        const { atol, rtol, names } = options;
        const [first, second] = [await placeOf(a), await placeOf(b)];
        const { fileSystem = localFileSystem } = first;
        const { fileSystem: otherFileSystem = localFileSystem } = second;
        const result = await withBar(output, (progress) =>
          diffCheckpoints(first.path, second.path, {
            fileSystem,
            otherFileSystem,
            ...given({ atol, rtol, names, progress }),
          }),
        );
        if (!result.equal) exit(1);
        print(options.json, result, () => showDiff(result));
      },
    );

  add("clean <folder>", "Remove what saves that died have left in a run's folder. Steps are never touched.", [
    "clean runs/a",
    "clean runs/a --dry-run",
  ])
    .option("--dry-run", "only tell what would go")
    .option("--force", "remove also what belongs to processes that cannot be seen from here")
    .action(async (folder: string, options: { json?: boolean; dryRun?: boolean; force?: boolean }) => {
      const { dryRun, force } = options;
      const { path, fileSystem } = await placeOf(folder);
      const result = await cleanCheckpoints(path, given({ dryRun, force, fileSystem }));
      print(options.json, result, () => showCleaned(result, dryRun ?? false));
    });

  add(
    "ledger <a> [b]",
    "Show a run's checksums by step, or compare two runs. Exit 1 names the first step that differs.",
    ["ledger runs/a", "ledger runs/a runs/b"],
  ).action(async (a: string, b: string | undefined, options: { json?: boolean }) => {
    const { lines } = await storedLedger(a);
    if (b === undefined) return print(options.json, lines, () => showLedger(lines));
    const result = compareLedgers(lines, (await storedLedger(b)).lines);
    if (result.first !== null || result.steps === 0) exit(1);
    print(options.json, result, () => showLedgerDifference(result));
  });

  add(
    "convert <paths...>",
    "Write a checkpoint of any known format in another, optimizer state under the names it has there.",
    [
      "convert model.pt --to safetensors --out model.safetensors",
      "convert optimizer.pt model.pt --to checkpoint --out runs/b",
      "convert runs/a --to dcp --out dcp --exclude 'ema.*' --rename 'encoder.*=*'",
      "convert runs/a --to ckpt --out ranks --ranks 8 --job 1/4",
    ],
  )
    .requiredOption("--to <format>", "safetensors, ckpt (MindSpore), pt or dcp (PyTorch), or checkpoint")
    .requiredOption("--out <path>", "the file or folder to write")
    .option("--map <file>", 'JSON of names: { "theirs": "ours" }')
    .option(
      "--parameter-order <order>",
      '"model": each group of the optimizer lists its parameters in the model\'s order',
    )
    .option("--rename <pattern=name...>", "names in the result, e.g. 'encoder.*=*'", parsePair)
    .option("--names <patterns...>", "only these tensors; * stands for anything")
    .option("--exclude <patterns...>", "leave these tensors out")
    .option("--dtype <dtype>", "convert every tensor, e.g. bf16")
    .option("--step <n>", "a step of a run's folder; the latest without it", parseCount)
    .option("--max-memory <size>", SIZE_HELP, parseSize)
    .option("--ranks <n>", "number of ranks to cut a checkpoint or MindSpore's files for", parseCount)
    .option("--layout <file>", "JSON: { mesh: { shape, axes }, tensors: { pattern: split } }")
    .option("--job <i/n>", "part i of n of the ranks' files, so that n processes share the work", parseJob)
    .option("--source-layout <file>", SOURCE_LAYOUT_HELP)
    .option("--max-shard-size <size>", "safetensors as a Hugging Face set of files, e.g. 5GB", parseSize)
    .option("--max-tensors <n>", "more tensors than this are refused", parseCount)
    .option("--max-unpacked <size>", "packed data (HDF5) may unpack to so much, e.g. 2GiB", parseSize)
    .option("--crc", "end MindSpore files with a checksum")
    .option("--overwrite", "replace the folder or step if it exists")
    .action(async (paths: string[], options: ConvertFlags) => {
      const { to, out, json, map: file, rename: pairs, layout: cut, sourceLayout: held, ...plain } = options;
      const { parameterOrder, exclude, crc, overwrite, ranks, job, maxShardSize, maxTensors, maxUnpacked } = plain;
      const map = file === undefined ? undefined : ((await readJson(file)) as Record<string, string>);
      const rename = pairs === undefined ? undefined : Object.fromEntries(pairs);
      const [layout, sourceLayout] = [await layoutIn(cut), await layoutIn(held)];
      const [from, target] = [await placesOf(paths), await placeOf(out)];
      const result = await withBar(output, (progress) =>
        convertCheckpoint(from.paths, target.path, {
          to: to as ConvertTarget,
          fileSystem: from.fileSystem ?? localFileSystem,
          outFileSystem: target.fileSystem ?? localFileSystem,
          ...selectionOf(options),
          ...given({ map, parameterOrder, rename, exclude, crc, overwrite, progress }),
          ...given({ ranks, layout, job, sourceLayout, maxShardSize, maxTensors, maxUnpacked }),
        }),
      );
      print(json, result, () => `${out}: written as ${to}`);
    });
  return program;
}

async function fromAndTo(path: string, out: string) {
  const [from, to] = [await placeOf(path), await placeOf(out)];
  const { fileSystem = localFileSystem } = from;
  return { path: from.path, out: to.path, options: { fileSystem, outFileSystem: to.fileSystem ?? localFileSystem } };
}

interface MergeFlags {
  readonly json?: boolean;
  readonly step?: number;
  readonly maxMemory?: number;
  readonly names?: string[];
  readonly dtype?: string;
  readonly sourceLayout?: string;
}

interface ConvertFlags extends MergeFlags {
  readonly to: string;
  readonly out: string;
  readonly map?: string;
  readonly parameterOrder?: "model";
  readonly rename?: [string, string][];
  readonly exclude?: string[];
  readonly ranks?: number;
  readonly layout?: string;
  readonly job?: [number, number];
  readonly maxShardSize?: number;
  readonly maxTensors?: number;
  readonly maxUnpacked?: number;
  readonly crc?: boolean;
  readonly overwrite?: boolean;
}

/** The members that are there: options left out and options of undefined are the same to a person. */
function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

function stepOf({ step }: { step?: number }): { step?: number } {
  return step === undefined ? {} : { step };
}

function selectionOf({ step, maxMemory, names, dtype }: MergeFlags) {
  return given({ step, maxMemory, names, dtype });
}

function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("must be a whole number.");
}

function parseTolerance(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0) return value;
  throw new InvalidArgumentError("must be a number of at least 0.");
}

function parseJob(text: string): [number, number] {
  const [, i, n] = /^(\d{1,9})\/(\d{1,9})$/.exec(text) ?? [];
  if (n !== undefined) return [Number(i), Number(n)];
  throw new InvalidArgumentError("must be part/parts, such as 1/4.");
}

function parsePair(text: string, before: [string, string][] = []): [string, string][] {
  const at = text.indexOf("=");
  if (at > 0) return [...before, [text.slice(0, at), text.slice(at + 1)]];
  throw new InvalidArgumentError("must be a pattern and a name, such as 'encoder.*=*'.");
}

function parseSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError("must be a size such as 64MiB.");
}

async function layoutIn(file: string | undefined): Promise<Layout | undefined> {
  return file === undefined ? undefined : ((await readJson(file)) as Layout);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OptError(
      "BAD_ARGUMENT",
      file,
      `must be a readable JSON file, got ${reason}.`,
      "Check the path and its contents.",
    );
  }
}

function showInspection(inspection: Inspection): string {
  const { format, path, step, steps, world, mesh, files, tensors, values, unreadable = {}, bytes } = inspection;
  const facts: [string, string][] = [
    ["format", format],
    ["path", path],
  ];
  if (step !== undefined)
    facts.push(["step", steps && steps.length > 1 ? `${step} of ${steps.join(", ")}` : `${step}`]);
  if (world !== undefined && mesh)
    facts.push(["ranks", `${world}, mesh ${mesh.axes.map((axis, i) => `${axis} ${mesh.shape[i]}`).join(" x ")}`]);
  if (files) facts.push(["files", `${files.length}`]);
  facts.push(["tensors", `${tensors.length}, ${formatBytes(bytes)}`]);
  const width = Math.max(...facts.map(([name]) => name.length));
  const head = facts.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
  const rows = tensors.map(({ name, dtype, shape, bytes: size, role, follows, boxes }) => {
    const what = follows === undefined ? (role ?? "") : `${role} of ${follows}`;
    return [name, dtype, `[${shape.join(", ")}]`, formatBytes(size), `${boxes}`, what];
  });
  const body =
    rows.length === 0 ? "" : `\n\n${table(["tensor", "dtype", "shape", "size", "boxes", "role"], rows, [3, 4])}`;
  const plain = Object.entries(values).map(([name, value]) => `${name} = ${abridged(JSON.stringify(value))}`);
  const unread = Object.entries(unreadable).map(([name, reason]) => `\n\n${name} cannot be read: ${reason}`);
  return `${head}${body}${unread.join("")}${plain.length === 0 ? "" : `\n\nvalues\n  ${plain.join("\n  ")}`}`;
}

function abridged(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}

function showVerified({ path, tensors, bytes, unverified }: VerifyResult): string {
  const doubt =
    unverified.length === 0 ? "" : ` (${unverified.length} tensors have no checksum: only their structure was checked)`;
  return `${path}: whole, ${tensors} tensors, ${formatBytes(bytes)} read${doubt}`;
}

function showCleaned({ removed, kept }: CleanResult, dryRun: boolean): string {
  const gone = removed.map((path) => `${dryRun ? "would remove" : "removed"} ${path}`);
  const stays = kept.map(
    ({ path, owner }) =>
      `kept ${path}: ${owner === "alive" ? "being written" : "its process cannot be seen from here"}`,
  );
  return [...gone, ...stays].join("\n") || "nothing to remove";
}

function showProblems({ problems }: VerifyResult): string[] {
  return problems.map(({ subject, file, begin, end, problem }) =>
    oneLine(`${subject}: ${file} bytes ${begin} to ${end}: ${problem}`),
  );
}

async function storedLedger(path: string): Promise<Ledger> {
  const { path: at, fileSystem } = await placeOf(path);
  const book = await ledger(at, given({ fileSystem }));
  if (book.lines.length > 0) return book;
  throw new OptError("MISSING", path, "there is no ledger.", "Give the file that ledger() wrote, or its folder.");
}

function showLedger(lines: readonly LedgerLine[]): string {
  const rows = lines.flatMap(({ step, tensors }) =>
    Object.entries(tensors).map(([name, sum]) => [`${step}`, name, sum] as const),
  );
  return table(["step", "tensor", "crc32"], rows, [0]);
}

function showLedgerDifference({ steps, first }: LedgerDifference): string {
  if (first !== null) return `step ${first.step} differs: ${first.tensors.join(", ")}`;
  return steps === 0 ? "no step is in both" : `equal: ${steps} steps`;
}

function showDiff({ equal, tensors, differences, values }: DiffResult): string {
  const note = values.length === 0 ? "" : `\nplain values that differ (not counted): ${values.join(", ")}`;
  if (equal) return `equal: ${tensors} tensors${note}`;
  const lines = differences.map(({ name, kind, a, b, count, elements, first, maxAbs }) => {
    if (kind === "values")
      return `${name}: ${count} of ${elements} elements differ, the first is number ${first}, largest distance ${maxAbs}`;
    return a === undefined ? `${name}: ${kind}` : `${name}: ${kind} ${a} and ${b}`;
  });
  return `${lines.join("\n")}${note}`;
}
