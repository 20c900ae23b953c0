/** The contract where memory ends: a byte read behind a slice is a trap here. */
import { FUSED_KINDS, staggeredBytes } from "@opt/core/backend";
import { contractSuite } from "@opt/testkit";
import { WasmBackend } from "./backend";
import { loadFma } from "./emit/fma";
import { Block, LinearMemory } from "./memory/linear";
import { enableQ8 } from "./q8";
import { enableStochasticRounding } from "./stochastic-rounding";
import { probeTarget } from "./target";

enableQ8();
enableStochasticRounding();

const PAGES = 512;
const END = PAGES * 65_536;

/** Its last half holds the first block that is asked for while it is free, flush with the end. */
class EdgeMemory extends LinearMemory {
  armed = false;
  #atEdge: Block | undefined;

  constructor() {
    super(false, PAGES);
    const low = super.allocate(END / 2);
    super.allocate(END - 65_536 - staggeredBytes(END / 2)); // the first page is the threads'
    super.free(low);
    if (this.reserved !== END) throw new Error(`memory ends at ${this.reserved}, not at ${END}`);
  }

  override allocate(bytes: number): Block {
    if (!this.armed || this.#atEdge !== undefined) return super.allocate(bytes);
    this.#atEdge = new Block(END - bytes, bytes);
    return this.#atEdge;
  }

  override free(block: Block): void {
    if (block === this.#atEdge) this.#atEdge = undefined;
    else super.free(block);
  }
}

async function open(): Promise<WasmBackend> {
  const memory = new EdgeMemory();
  const target = probeTarget(false);
  const backend = new WasmBackend(memory, target, undefined);
  await loadFma(target);
  await backend.load();
  memory.armed = true;
  return backend;
}

const portable = probeTarget(false).fused.f32;
contractSuite({
  name: "wasm",
  dtypes: ["f32", "f64"],
  open,
  edge: true,
  fuses: FUSED_KINDS,
  epilogues: true,
  portable,
});
