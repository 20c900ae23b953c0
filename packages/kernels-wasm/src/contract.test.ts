import { FUSED_KINDS } from "@opt/core/backend";
import { contractSuite } from "@opt/testkit";
import { workspaceRules } from "@opt/testkit/rules";
import { openWasmBackend } from "./backend";
import { enableQ8 } from "./q8";
import { enableStochasticRounding } from "./stochastic-rounding";
import { probeTarget } from "./target";

enableQ8();
enableStochasticRounding();

const rules = await workspaceRules();
// Weights are made of fused multiply-adds, which Node 20 lacks.
const portable = probeTarget(false).fused.f32;
const open = () => openWasmBackend({ threads: 2 });
contractSuite({
  name: "wasm",
  dtypes: ["f32", "f64"],
  open,
  rules,
  fuses: FUSED_KINDS,
  epilogues: true,
  portable,
});
