/** The command line. */
import { Command, InvalidArgumentError, Option } from "commander";
import { type OptimizerName, optimizerNames } from "./optimizers";

export interface Options {
  readonly device?: string;
  readonly optimizer?: readonly OptimizerName[];
  readonly epochs: number;
  readonly batchSize: number;
  readonly seed: number;
  readonly ranks: number;
  readonly out: string;
}

function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}.`);
  };
}

function chosen(text: string, before: readonly OptimizerName[] = []): readonly OptimizerName[] {
  const names = text.split(",").map((part) => {
    const name = optimizerNames.find((known) => known.toLowerCase() === part.trim().toLowerCase());
    if (name === undefined) throw new InvalidArgumentError(`It must be of ${optimizerNames.join(", ")}.`);
    return name;
  });
  return [...new Set([...before, ...names])];
}

/** Wrong usage and --help end the process, with status 2 and 0. */
export function parseOptions(argv: readonly string[]): Options {
  return new Command("npm start --")
    .description("Trains a 784-256-10 network on MNIST with each optimizer, and draws what happened.")
    .option("--device <name>", "webgpu, cpu, wasm or js; by default the best one that opens")
    .addOption(new Option("--optimizer <names>", `of ${optimizerNames.join(", ")}; by default all`).argParser(chosen))
    .option("--epochs <count>", "passes over the 60,000 training images", integer(1, 1000), 3)
    .option("--batch-size <count>", "images a step", integer(1, 60_000), 128)
    .option("--seed <number>", "of the first weights and the order of the images", integer(0, 2 ** 32), 1)
    .option("--ranks <count>", "processes of the phase that trains on several", integer(1, 64), 2)
    .option("--out <folder>", "where report.html goes", "runs/mnist")
    .configureOutput({ outputError: (message, write) => write(message) })
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv, { from: "user" })
    .opts<Options>();
}
