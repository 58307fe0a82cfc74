import { afmoe } from './afmoe.ts';
import { albert } from './albert.ts';
import { apertus } from './apertus.ts';
import { arcee } from './arcee.ts';
import type { Architecture } from './architecture.ts';
import { baichuan } from './baichuan.ts';
import { bamba } from './bamba.ts';
import { bart } from './bart.ts';
import { bert, electra, roberta } from './bert.ts';
import { biogpt } from './biogpt.ts';
import { bitnet } from './bitnet.ts';
import { bloom } from './bloom.ts';
import { chatglm } from './chatglm.ts';
import { cohere, cohere2 } from './cohere.ts';
import { cwm } from './cwm.ts';
import { debertaV2 } from './deberta.ts';
import { deepseekV2, deepseekV3, mistral4, youtu } from './deepseek.ts';
import { distilbert } from './distilbert.ts';
import { dots1 } from './dots1.ts';
import { ernie45 } from './ernie4-5.ts';
import { ernie45Moe } from './ernie4-5-moe.ts';
import { esm } from './esm.ts';
import { eurobert } from './eurobert.ts';
import { exaone } from './exaone.ts';
import { exaoneMoe } from './exaone-moe.ts';
import { exaone4 } from './exaone4.ts';
import { falcon } from './falcon.ts';
import { falconH1 } from './falcon-h1.ts';
import { gemma, gemma2, gemma3 } from './gemma.ts';
import { gemma3Vision } from './gemma3-vision.ts';
import { gemma3n } from './gemma3n.ts';
import { gemma3nVision } from './gemma3n-vision.ts';
import { gemma4 } from './gemma4.ts';
import { gemma4Vision } from './gemma4-vision.ts';
import { glm } from './glm.ts';
import { glm4Moe } from './glm4-moe.ts';
import { glm4v } from './glm4v.ts';
import { gptBigcode } from './gpt-bigcode.ts';
import { gptNeo } from './gpt-neo.ts';
import { gptNeox } from './gpt-neox.ts';
import { gptOss } from './gpt-oss.ts';
import { gpt2 } from './gpt2.ts';
import { codegen, gptj } from './gptj.ts';
import { granite } from './granite.ts';
import { graniteHybrid } from './granite-hybrid.ts';
import { graniteMoe } from './granite-moe.ts';
import { helium } from './helium.ts';
import { hunyuanDense } from './hunyuan-dense.ts';
import { hunyuanMoe } from './hunyuan-moe.ts';
import { hunyuan3 } from './hunyuan3.ts';
import { idefics3 } from './idefics3.ts';
import { internlm2, internlm3 } from './internlm2.ts';
import { internvl } from './internvl.ts';
import { jais2 } from './jais2.ts';
import { jamba } from './jamba.ts';
import { lfm2 } from './lfm2.ts';
import { llama } from './llama.ts';
import { llamaClones } from './llama-clones.ts';
import { llama4 } from './llama4.ts';
import { llama4Vision } from './llama4-vision.ts';
import { llava } from './llava.ts';
import { llavaKin } from './llava-kin.ts';
import { mamba } from './mamba.ts';
import { mamba2 } from './mamba2.ts';
import { minicpm3 } from './minicpm3.ts';
import { minimaxM2 } from './minimax-m2.ts';
import { ministral3, mistral } from './mistral.ts';
import { mistral3 } from './mistral3.ts';
import { mixtral } from './mixtral.ts';
import { mllama } from './mllama.ts';
import { modernbert } from './modernbert.ts';
import { mpnet } from './mpnet.ts';
import { mpt } from './mpt.ts';
import { nanochat } from './nanochat.ts';
import { nemotron } from './nemotron.ts';
import { nemotronH } from './nemotron-h.ts';
import { nomicBert } from './nomic-bert.ts';
import { flexOlmo, olmo, olmo2, olmoe } from './olmo.ts';
import { opt } from './opt.ts';
import { paligemma } from './paligemma.ts';
import { persimmon } from './persimmon.ts';
import { phi } from './phi.ts';
import { phi3 } from './phi3.ts';
import { phi4Multimodal } from './phi4-multimodal.ts';
import { phimoe } from './phimoe.ts';
import { qwen } from './qwen.ts';
import { qwen2Moe, qwen3Moe } from './qwen-moe.ts';
import { qwenNext } from './qwen-next.ts';
import { qwenOmni } from './qwen-omni.ts';
import { qwen2Vl, qwen3Vl, qwen25Vl } from './qwen-vl.ts';
import { qwen2 } from './qwen2.ts';
import { qwen3 } from './qwen3.ts';
import { seedOss } from './seed-oss.ts';
import { smollm3 } from './smollm3.ts';
import { stablelm } from './stablelm.ts';
import { starcoder2 } from './starcoder2.ts';
import { t5 } from './t5.ts';
import { t5gemma } from './t5gemma.ts';
import { whisper } from './whisper.ts';

/** Every architecture snug can describe; a new one is a file beside this and a line here. */
export const ARCHITECTURES: readonly Architecture[] = [
  llama,
  mistral,
  mixtral,
  qwen2,
  qwen3,
  qwen2Moe,
  qwen3Moe,
  gemma,
  gemma2,
  gemma3,
  phi,
  phi3,
  gpt2,
  gptNeox,
  falcon,
  starcoder2,
  olmo,
  olmo2,
  olmoe,
  opt,
  granite,
  smollm3,
  seedOss,
  arcee,
  apertus,
  bloom,
  cohere,
  cohere2,
  ernie45,
  exaone4,
  glm,
  gptBigcode,
  gptNeo,
  codegen,
  gptj,
  helium,
  hunyuanDense,
  mpt,
  nemotron,
  persimmon,
  stablelm,
  ministral3,
  bert,
  roberta,
  electra,
  distilbert,
  modernbert,
  debertaV2,
  t5,
  t5gemma,
  bart,
  graniteMoe,
  glm4Moe,
  gptOss,
  deepseekV2,
  deepseekV3,
  qwenNext,
  lfm2,
  ernie45Moe,
  baichuan,
  chatglm,
  exaone,
  internlm2,
  internlm3,
  llamaClones,
  qwen,
  qwen2Vl,
  qwen25Vl,
  qwen3Vl,
  paligemma,
  mllama,
  mistral3,
  llava,
  internvl,
  idefics3,
  gemma3Vision,
  mamba,
  mamba2,
  graniteHybrid,
  bamba,
  bitnet,
  cwm,
  dots1,
  exaoneMoe,
  hunyuanMoe,
  jais2,
  llama4,
  minimaxM2,
  nanochat,
  phimoe,
  mistral4,
  youtu,
  flexOlmo,
  jamba,
  falconH1,
  nemotronH,
  gemma4,
  gemma3n,
  gemma4Vision,
  llama4Vision,
  minicpm3,
  afmoe,
  hunyuan3,
  albert,
  mpnet,
  esm,
  eurobert,
  nomicBert,
  llavaKin,
  glm4v,
  gemma3nVision,
  whisper,
  biogpt,
  phi4Multimodal,
  qwenOmni,
];
