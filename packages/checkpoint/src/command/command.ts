/** The `opt-checkpoint` command. Exit codes: 0 done, 1 the data says no or something fails, 2 wrong usage. */
import { createRequire } from "node:module";
import { check, OptError } from "@opt/core";
import { Command, CommanderError, Option } from "commander";
import { type DiffOptions, diffCheckpoints } from "../compare/diff";
import { type ConvertOptions, type ConvertTarget, convertCheckpoint } from "../convert/convert";
import { explainCheckpoint } from "../explain/explain";
import { compareLedgers } from "../ledger/compare";
import { inspectCheckpoint } from "../read/inspect";
import { verifyCheckpoint } from "../read/verify";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { type CleanOptions, cleanCheckpoints } from "../save/step/clean";
import { pruneCheckpoints } from "../save/step/prune";
import type { Retention } from "../save/step/retention";
import { colored, formatBytes, type Output, withBar } from "./output";
import { parseCache, parseCount, parseJob, parsePair, parseSize, parseTolerance, readJson } from "./parse";
import { outputPlaceOf, placeOf, placesOf, storedLedger } from "./place";
import {
  oneLine,
  showCleaned,
  showDiff,
  showExplanation,
  showInspection,
  showLedger,
  showLedgerDifference,
  showProblems,
  showPruned,
  showVerified,
} from "./show";

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
    const message = oneLine(error.message).replace(
      /overwrite: true|maxObjects|maxHeaderBytes|the option token|cacheLimit|cache: true/g,
      (option) => FLAGS[option]!,
    );
    output.error(`${colored(output.hasColors?.error, "red", message)}\n`);
    return error.code === "BAD_ARGUMENT" ? 2 : 1;
  }
}

/** What messages call options, and what they are called here. */
const FLAGS: Readonly<Record<string, string>> = {
  "overwrite: true": "--overwrite",
  maxObjects: "--max-objects",
  maxHeaderBytes: "--max-header-bytes",
  "the option token": "--token",
  cacheLimit: "--cache-limit",
  "cache: true": "--cache",
};

/** Options of commands, under the names of their functions' options. */
interface Flags extends Omit<ConvertOptions, "to" | "progress">, Pick<DiffOptions, "atol" | "rtol">, CleanOptions {
  readonly out: string;
  readonly to: ConvertTarget;
  readonly keepLast?: number;
  readonly keepEvery?: number;
  readonly keepBest?: number;
}

/** `--best loss --highest` as the option `best`. */
function withBest({ highest, lowest, best, ...flags }: Record<string, unknown>): Record<string, unknown> {
  const isAlone = best === undefined && (highest !== undefined || lowest !== undefined);
  check(!isAlone, "BAD_ARGUMENT", "best", () => "--highest and --lowest need --best.", "For example --best loss.");
  return best === undefined ? flags : { ...flags, best: { value: best, ...(highest ? { highest: true } : {}) } };
}

interface Answer {
  /** For machines. */
  readonly result: unknown;
  /** For people. */
  text(): string;
  /** The data says no, or where it is false yes. */
  readonly isNo?: boolean;
  /** What is wrong, a line each, in place of the text. */
  readonly problems?: readonly string[];
}

const flag = (flags: string, about: string, parse?: (text: string, before: never) => unknown) =>
  parse
    ? new Option(flags, about).argParser(parse as (text: string, before: unknown) => unknown)
    : new Option(flags, about);
const needed = (flags: string, about: string) => flag(flags, about).makeOptionMandatory();

const REMOTE = [
  flag("--cache [folder]", "keep what is read of addresses, in this folder or the user's own", parseCache),
  flag("--cache-limit <size>", "most bytes of the cache, 10GiB without it", parseSize),
  flag("--token <token>", "opens private addresses; other users of this machine can read it, unlike HF_TOKEN"),
];
const BEST = [
  flag("--best <value>", "the step with the least number of this name among its values"),
  flag("--highest", "best is the greatest").conflicts("lowest"),
  flag("--lowest", "best is the least, the default"),
];
/** What is read: which step of a run's folder, and how much of a file is believed. */
const OPENED = [
  flag("--step <n>", "a step of a run's folder; the latest without it", parseCount).conflicts("best"),
  ...BEST,
  ...REMOTE,
  flag("--max-objects <n>", "most objects of a Python file that you trust", parseCount),
  flag("--max-header-bytes <size>", "most bytes of a header of a file that you trust, e.g. 1GiB", parseSize),
];
const NAMES = flag("--names <patterns...>", "only these tensors; * stands for anything");
const EXCLUDE = flag("--exclude <patterns...>", "leave these tensors out");
const RANKS = flag("--ranks <n>", "number of ranks to cut for; may be left out with --layout", parseCount);
const LAYOUT = flag("--layout <file>", "JSON: { mesh: { shape, axes }, tensors: { pattern: split } }", readJson);
const OVERWRITE = flag("--overwrite", "replace the file, folder or step if it exists");
const WRITTEN = [
  ...OPENED,
  flag("--max-memory <size>", "most memory for buffers, e.g. 64MiB", parseSize),
  NAMES,
  EXCLUDE,
  flag("--dtype <dtype>", "convert every tensor, e.g. bf16"),
  flag("--source-layout <file>", "JSON as for --layout: how the ranks that wrote MindSpore files held them", readJson),
];

const PLACES = `Paths: a file or folder of this machine, or s3://bucket/path.
Also read: https://host/path, hf://owner/name[@revision][/path]. HF_TOKEN or --token opens private repositories.
`;

/** How what is written is named. */
const RENAME = flag("--rename <pattern=name...>", "other names, e.g. 'encoder.*=*'", parsePair);
const NAMED = [
  flag("--map <file>", 'JSON of names: { "theirs": "ours" }', readJson),
  flag("--parameter-order <order>", '"model": each group of the optimizer lists its parameters in the model\'s order'),
  RENAME,
];

function build(output: Output, exit: (code: number) => void): Command {
  // By the package's own name: from source, as built and in a bundle the way to the file differs.
  const { version } = createRequire(import.meta.url)("@opt/checkpoint/package.json");
  const program = new Command("opt-checkpoint")
    .description("Sharded checkpoints: look at, verify, merge, re-slice, compare and convert them.")
    .addHelpText("after", `\n${PLACES}`)
    .version(version, "--version", "print the version")
    .exitOverride()
    .configureOutput({
      writeOut: output.out,
      writeErr: (text) => output.error(`${oneLine(text.trim())}\n`),
      getOutHasColors: () => output.hasColors?.out ?? false,
    })
    .configureHelp({
      styleTitle: (text) => colored(true, "bold", text),
      styleSubcommandText: (text) => colored(true, "cyan", text),
      styleOptionText: (text) => colored(true, "cyan", text),
    })
    .showHelpAfterError(false);
  const add = (
    name: string,
    summary: string,
    examples: readonly string[],
    flags: readonly Option[],
    run: (paths: string[], flags: Flags) => Promise<Answer>,
  ) => {
    const command = program
      .command(name)
      .description(summary)
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  $ opt-checkpoint ${example}`).join("\n")}\n`)
      .option("--json", "print JSON for machines");
    for (const one of flags) command.addOption(one);
    command.action(async () => {
      const { json, ...given } = command.opts();
      const { result, text, isNo, problems } = await run(command.args, withBest(given) as unknown as Flags);
      if (isNo) exit(1);
      if (json) output.out(`${JSON.stringify(result, null, 2)}\n`);
      else if (problems)
        for (const line of problems) output.error(`${colored(output.hasColors?.error, "red", line)}\n`);
      else {
        const hasColors = isNo !== undefined && output.hasColors?.out;
        output.out(`${colored(hasColors, isNo ? "red" : "green", text())}\n`);
      }
    });
  };

  add(
    "inspect <path>",
    "Show what a checkpoint of any known format holds.",
    ["inspect runs/a --best loss", "inspect model.safetensors --json", "inspect hf://openai-community/gpt2"],
    OPENED,
    async ([path], flags) => {
      const { path: at, fileSystem } = await placeOf(path!);
      const result = await inspectCheckpoint(at, { ...flags, fileSystem });
      return { result, text: () => showInspection(result) };
    },
  );

  add(
    "verify <path>",
    "Read every byte and compare checksums. Exit 1 names each bad tensor, file and byte range.",
    ["verify runs/a"],
    OPENED,
    async ([path], flags) => {
      const { path: at, fileSystem } = await placeOf(path!);
      const result = await withBar(output, (bar) => verifyCheckpoint(at, { ...flags, fileSystem, ...bar }));
      if (result.ok) return { result, text: () => showVerified(result), isNo: false };
      return { result, text: () => "", isNo: true, problems: showProblems(result) };
    },
  );

  add(
    "merge <path>",
    "Join all slices into one safetensors file of whole tensors.",
    [
      "merge runs/a --out model.safetensors",
      "merge s3://training/runs/a --out model.safetensors",
      "merge runs/a --out model.safetensors --max-memory 64MiB --dtype bf16 --names 'model.*'",
    ],
    [needed("--out <file>", "the file to write"), ...NAMED, ...WRITTEN, OVERWRITE],
    async ([path], { out, ...flags }) => {
      const [{ path: from, fileSystem }, to] = [await placeOf(path!), await outputPlaceOf(out)];
      const options = { ...flags, fileSystem, outFileSystem: to.fileSystem };
      const result = await withBar(output, (bar) => mergeCheckpoint(from, to.path, { ...options, ...bar }));
      return { result, text: () => `${result.path}: ${result.tensors} tensors, ${formatBytes(result.byteLength)}` };
    },
  );

  add(
    "reshard <path>",
    "Slice a checkpoint for another number of ranks or another layout.",
    ["reshard runs/a --out runs/b --ranks 2", "reshard runs/a --out runs/b --layout layout.json --max-memory 64MiB"],
    [
      needed("--out <folder>", "the run's folder to write the step into"),
      RANKS,
      LAYOUT,
      ...NAMED,
      ...WRITTEN,
      OVERWRITE,
    ],
    async ([path], { out, ...flags }) => {
      const isCut = flags.ranks !== undefined || flags.layout !== undefined;
      check(
        isCut,
        "BAD_ARGUMENT",
        "reshard",
        () => "--ranks or --layout is needed, got neither.",
        "For example --ranks 2.",
      );
      const [{ path: from, fileSystem }, to] = [await placeOf(path!), await outputPlaceOf(out)];
      const options = { ...flags, fileSystem, outFileSystem: to.fileSystem };
      const result = await withBar(output, (bar) => reshardCheckpoint(from, to.path, { ...options, ...bar }));
      return { result, text: () => `${result.path}: ${result.ranks} ranks` };
    },
  );

  add(
    "diff <a> <b>",
    "Compare two checkpoints. Exit 1 names each tensor that differs.",
    ["diff runs/a runs/b", "diff a.safetensors b.pt --rtol 1e-5 --rename 'module.*=*'"],
    [
      ...OPENED,
      flag("--atol <x>", "absolute tolerance", parseTolerance),
      flag("--rtol <y>", "relative tolerance", parseTolerance),
      NAMES,
      RENAME,
    ],
    async ([a, b], flags) => {
      const [{ path: first, fileSystem }, second] = [await placeOf(a!), await placeOf(b!)];
      const options = { ...flags, fileSystem, otherFileSystem: second.fileSystem };
      const result = await withBar(output, (bar) => diffCheckpoints(first, second.path, { ...options, ...bar }));
      return { result, text: () => showDiff(result), isNo: !result.equal };
    },
  );

  add(
    "clean <folder>",
    "Remove what saves that died have left in a run's folder. Steps are never touched.",
    ["clean runs/a", "clean runs/a --dry-run"],
    [
      flag("--dry-run", "only tell what would go"),
      flag("--force", "remove also what belongs to processes that cannot be seen from here"),
    ],
    async ([folder], flags) => {
      const { path, fileSystem } = await placeOf(folder!);
      const result = await cleanCheckpoints(path, { ...flags, fileSystem });
      return { result, text: () => showCleaned(result, flags.dryRun ?? false) };
    },
  );

  add(
    "prune <folder>",
    "Remove steps of a run, but those that one of the options keeps. The newest always stays.",
    ["prune runs/a --keep-last 3", "prune runs/a --keep-last 1 --keep-best 2 --best accuracy --highest --dry-run"],
    [
      flag("--keep-last <n>", "keep so many of the newest", parseCount),
      flag("--keep-every <n>", "keep steps whose number is a multiple of it", parseCount),
      flag("--keep-best <n>", "keep so many of the best by --best; 1 without it", parseCount),
      ...BEST,
      flag("--dry-run", "only tell what would go"),
    ],
    async ([folder], { keepLast: last, keepEvery: every, keepBest: count, best, dryRun = false }) => {
      const isBest = count === undefined || best !== undefined;
      check(isBest, "BAD_ARGUMENT", "prune", () => "--keep-best needs --best.", "For example --best loss.");
      const { path, fileSystem } = await placeOf(folder!);
      const rules = { last, every, best: best && { ...best, ...(count === undefined ? {} : { count }) } };
      const keep: Retention = Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule !== undefined));
      const result = await pruneCheckpoints(path, { keep, dryRun, fileSystem });
      return { result, text: () => showPruned(result, dryRun) };
    },
  );

  add(
    "ledger <a> [b]",
    "Show a run's checksums by step, or compare two runs. Exit 1 names the first step that differs.",
    ["ledger runs/a", "ledger runs/a runs/b"],
    [],
    async ([a, b]) => {
      const { lines } = await storedLedger(a!);
      if (b === undefined) return { result: lines, text: () => showLedger(lines) };
      const result = compareLedgers(lines, (await storedLedger(b)).lines);
      const isNo = result.first !== null || result.steps === 0;
      return { result, text: () => showLedgerDifference(result), isNo };
    },
  );

  add(
    "explain <paths...>",
    "Say what a resume would miss: cold or missing optimizer state, counters that differ. Exit 1 if some is lost.",
    ["explain runs/a", "explain optimizer.pt model.pt"],
    OPENED,
    async (paths, flags) => {
      const { paths: places, fileSystem } = await placesOf(paths);
      const result = await explainCheckpoint(places, { ...flags, fileSystem });
      const isNo = result.findings.some(({ kind }) => ["cold", "missing", "orphan"].includes(kind));
      return { result, text: () => showExplanation(result), isNo };
    },
  );

  add(
    "convert <paths...>",
    "Write a checkpoint of any known format in another, optimizer state under the names it has there.",
    [
      "convert model.pt --to safetensors --out model.safetensors",
      "convert https://example.org/model.safetensors --to npz --out model.npz --cache",
      "convert optimizer.pt model.pt --to checkpoint --out runs/b",
      "convert runs/a --to dcp --out dcp --exclude 'ema.*' --rename 'encoder.*=*'",
      "convert runs/a --to ckpt --out ranks --ranks 8 --job 1/4",
    ],
    [
      needed(
        "--to <format>",
        "safetensors, ckpt (MindSpore), pt or dcp (PyTorch), npz (NumPy), msgpack (flax), or checkpoint",
      ),
      needed("--out <path>", "the file or folder to write"),
      ...NAMED,
      ...WRITTEN,
      RANKS,
      LAYOUT,
      flag("--job <i/n>", "part i of n of the ranks' files, so that n processes share the work", parseJob),
      flag("--max-shard-size <size>", "safetensors as a Hugging Face set of files, e.g. 5GB", parseSize),
      flag("--crc", "end MindSpore files with a checksum"),
      OVERWRITE,
    ],
    async (paths, { out, ...flags }) => {
      const [from, to] = [await placesOf(paths), await outputPlaceOf(out)];
      const options = { ...flags, fileSystem: from.fileSystem, outFileSystem: to.fileSystem };
      const result = await withBar(output, (bar) => convertCheckpoint(from.paths, to.path, { ...options, ...bar }));
      return { result, text: () => `${out}: written as ${flags.to}` };
    },
  );
  return program;
}
