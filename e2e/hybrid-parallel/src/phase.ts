/**
 * A phase of the tutorial as a program of ranks: `opt-run -n 4 phase.ts <folder> --mesh 2x2 --from 0 --to 20`. Data ranks share each
 * step's samples, model ranks the layers. It goes on from the checkpoint in <folder> where there is one, whatever mesh saved it.
 */
import "@opt/collectives-mpi"; // or under mpirun
import { parseArgs } from "node:util";
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import { Generator, randn, type Tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Module, mseLoss } from "@opt/nn";
import {
  ColumnParallelLinear,
  type Communicator,
  connect,
  DataParallel,
  layoutOf,
  mesh,
  RowParallelLinear,
} from "@opt/parallel";

/** Samples of a step, on all ranks together. */
const SAMPLES = 12;
const [FEATURES, HIDDEN, OUTPUTS] = [6, 12, 4];

class Net extends Module {
  readonly up: ColumnParallelLinear;
  readonly down: RowParallelLinear;

  constructor(model: Communicator) {
    super();
    const generator = new Generator(11);
    this.up = new ColumnParallelLinear(FEATURES, HIDDEN, model, { generator });
    this.down = new RowParallelLinear(HIDDEN, OUTPUTS, model, { generator });
  }

  forward(x: Tensor): Tensor {
    return this.down.forward(this.up.forward(x).tanh());
  }
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mesh: { type: "string", default: "1x1" },
    from: { type: "string", default: "0" },
    to: { type: "string", default: "20" },
    /** Saves after so many steps; at the end anyway. */
    every: { type: "string", default: "1000000" },
    /** Where what was loaded is saved again, as this mesh holds it. */
    again: { type: "string" },
  },
});
const [folder = "runs/hybrid-parallel"] = positionals;
const [data = 1, model = 1] = options.mesh.split("x").map(Number);
const [from, to] = [Number(options.from), Number(options.to)];

const communicator = await connect();
const grid = mesh(communicator, { data, model });
const net = new Net(grid.axis("model"));
const optimizer = new NAdam(net.namedParameters(), { lr: 0.02 });
const layout = layoutOf(net, grid);

if (from > 0) {
  const loaded = await loadCheckpoint(folder, { layout, rank: communicator.rank });
  net.loadStateDict(Object.fromEntries(Object.keys(net.stateDict()).map((name) => [name, loaded.tensors[name]!])));
  optimizer.loadStateDict(optimizerState(loaded));
}

/** Each rank saves what it holds; replicas are compared. */
async function save(path: string, step: number): Promise<void> {
  const { tensors, values } = optimizerContents(optimizer.stateDict());
  const contents = { step, tensors: { ...net.stateDict(), ...tensors }, values };
  await saveCheckpoint(path, contents, { communicator, layout, checkReplicas: true });
}
if (options.again !== undefined) await save(options.again, from);

const parallel = new DataParallel(net, grid.axis("data"));
const losses: number[] = [];
const share = SAMPLES / data;
const first = grid.coordinates[0]! * share;
for (let step = from; step < to; step++) {
  const loss = tidy(() => {
    const generator = new Generator(100 + step);
    const x = randn([SAMPLES, FEATURES], { generator }).slice(first, first + share);
    const y = x.slice(0, OUTPUTS, 1).mul(x.slice(2, 2 + OUTPUTS, 1));
    const result = mseLoss(parallel.forward(x), y);
    result.backward();
    return result.detach();
  });
  await parallel.sync();
  optimizer.step();
  optimizer.zeroGrad();
  if ((step + 1) % Number(options.every) === 0 && step + 1 < to) await save(folder, step + 1);
  losses.push(await (await grid.axis("data").allReduce(loss, "mean")).item());
}
await save(folder, to);
if (communicator.rank === 0) console.log(JSON.stringify({ losses }));
await communicator.close();
