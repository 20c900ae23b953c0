import { contractSuite } from "@opt/testkit";
import { workspaceRules } from "@opt/testkit/rules";
import { openWasmBackend } from "./backend";
import { FUSES } from "./kernels";
import { enableQ8 } from "./q8";
import { enableStochasticRounding } from "./stochastic-rounding";

enableQ8();
enableStochasticRounding();

const rules = await workspaceRules();
contractSuite({
  name: "wasm",
  dtypes: ["f32", "f64"],
  open: () => openWasmBackend({ threads: 2 }),
  rules,
  fuses: FUSES,
});
