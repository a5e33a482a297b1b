"""Signatures of stateful models as exporters write them, each with its right answer, and small graphs that have them.

A line is `name=sizes name=sizes -> name=sizes ... | input=>output ...`; no answer after the bar means that `carry="auto"`
has to refuse. A size is a number or a name, a scalar has none; `@i64`, `@i32` or `@bool` is a type other than float.
"""
# ruff: noqa: E501  (a table: one signature a line)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.onnx.models import initializer, model
from webrnn.ir import DType, Symbol, Value

_TYPES = {
    "": (DType.FLOAT, TensorProto.FLOAT),
    "i64": (DType.INT64, TensorProto.INT64),
    "i32": (DType.INT32, TensorProto.INT32),
    "bool": (DType.BOOL, TensorProto.BOOL),
}


@dataclass(frozen=True)
class Port:
    name: str
    sizes: tuple[int | str, ...]
    type: str

    @property
    def value(self) -> Value:
        return Value(self.name, _TYPES[self.type][0], tuple(_dim(size) for size in self.sizes))

    @property
    def info(self):
        return helper.make_tensor_value_info(self.name, _TYPES[self.type][1], self.sizes)


@dataclass(frozen=True)
class Signature:
    family: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    carry: dict[str, str] | None
    """None: it has to be refused."""

    def __str__(self) -> str:
        return f"{self.family}: {' '.join(p.name for p in self.inputs)} -> {' '.join(p.name for p in self.outputs)}"

    def graph(self) -> ModelProto:
        """Each output is a function of all inputs; a state is what it was, plus that."""
        nodes, parts = [], []
        for number, port in enumerate(self.inputs):
            nodes.append(helper.make_node("Cast", [port.name], [f"_f{number}"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("ReduceSum", [f"_f{number}"], [f"_p{number}"], keepdims=0))
            parts.append(f"_p{number}")
        nodes.append(helper.make_node("Sum", parts, ["_all"]))
        before = {after: name for name, after in (self.carry or {}).items()}
        constants = []
        for number, port in enumerate(self.outputs):
            kind = _TYPES[port.type][1]
            source = before.get(port.name)
            if source is None or source not in [p.name for p in self.inputs]:
                shape = np.int64([size if isinstance(size, int) else 3 for size in port.sizes])
                constants.append(initializer(f"_s{number}", shape))
                nodes.append(helper.make_node("Expand", ["_all", f"_s{number}"], [f"_o{number}"]))
            else:
                place = [p.name for p in self.inputs].index(source)
                nodes.append(helper.make_node("Add", [f"_f{place}", "_all"], [f"_o{number}"]))
            nodes.append(helper.make_node("Cast", [f"_o{number}"], [port.name], to=kind))
        return model(nodes, [p.info for p in self.inputs], [p.info for p in self.outputs], constants)


def _dim(size: int | str):
    return Symbol(size) if isinstance(size, str) else size


def _port(text: str) -> Port:
    text, _, kind = text.partition("@")
    name, _, sizes = text.rpartition("=")
    found = tuple(int(size) if size.isdecimal() else size for size in sizes.split(",") if size)
    return Port(name, found, kind)


def signature(family: str, line: str) -> Signature:
    ports, _, answer = line.partition("|")
    before, after = ports.split("->")
    pairs = dict(pair.split("=>") for pair in answer.split())
    inputs, outputs = (tuple(map(_port, side.split())) for side in (before, after))
    return Signature(family, inputs, outputs, pairs or None)


def _rows(family: str, text: str) -> list[Signature]:
    return [signature(family, line) for line in text.strip().splitlines() if line.strip()]


def _each(family: str, line: str, names: str) -> list[Signature]:
    """The line for each pair of names."""
    return [signature(family, line.format(*pair.split("=>"))) for pair in names.split()]


ONE = "x=1,1,40 {0}=1,1,64 -> y=1,1,10 {1}=1,1,64 | {0}=>{1}"
SAME = "x=1,1,64 {0}=1,1,64 -> y=1,1,64 {1}=1,1,64 | {0}=>{1}"
"""The signal has the shape of the state."""

MARKED = (
    "h_in=>h_out hidden_in=>hidden_out state_in=>state_out stateIn=>stateOut states_in=>states_out h0=>hn h_0=>h_n "
    "h0=>h_n h0=>h_out h=>hn h=>h_n h=>h_out h=>h_new h=>new_h hx=>hy hx=>hx_out prev_h=>next_h h_prev=>h_next "
    "h_prev=>h h=>h_next prev_state=>state prev_state=>new_state state=>stateN state=>state_out state=>new_state "
    "state=>next_state in_state=>out_state i_state=>o_state input_state=>output_state old_state=>updated_state "
    "state_old=>state_new initial_state=>final_state init_state=>last_state h_t-1=>h_t h_tm1=>h_t htm1=>ht h_t=>h_t+1 "
    "carry_in=>carry_out mem=>mem_out mem=>new_mem mem_in=>mem_out memory=>updated_memory buf=>buf_out buf_in=>buf_out "
    "buffer=>new_buffer s=>s_new s_in=>s_out cache=>new_cache cache=>r_cache cache=>cache_out cache_in=>cache_out "
    "recurrent_in=>recurrent_out state.in=>state.out state:0=>state_out:0 serving_default_h:0=>h_out hidden=>hidden_out "
    "hidden=>hidden.1 hidden.1=>hidden hidden=>h_out h_in=>hidden_out hidden_state=>hidden_state_out hidden=>next_hidden "
    "hidden_state_in=>hidden_state_out rnn_state=>rnn_state_out gru_h=>gru_h_out ctx=>ctx_out history=>new_history "
    "statein=>stateout current_state=>next_state prev_state=>current_state initial_h=>Y_h lstm_state=>lstm_stateN "
    "foo_prev=>foo_next acc=>acc_new delay_in=>delay_out last_state=>state hin=>hout dec_state=>dec_state_next "
    "overlap=>overlap_out conv_buf=>conv_buf_new state_before=>state_after hid=>hid_out kv_cache=>new_kv_cache "
    "past_kv=>present_kv past=>present state=>state_ret enc_h=>enc_h_out h0=>next_h0 state_1=>state_1_out"
)

TWO = """
x=1,1,40 h=1,1,64 c=1,1,64 -> y=1,1,10 hn=1,1,64 cn=1,1,64 | h=>hn c=>cn
x=1,1,40 h0=1,1,64 c0=1,1,64 -> y=1,1,10 cn=1,1,64 hn=1,1,64 | h0=>hn c0=>cn
x=1,1,40 c_in=1,1,64 h_in=1,1,64 -> h_out=1,1,64 c_out=1,1,64 y=1,1,10 | h_in=>h_out c_in=>c_out
x=1,1,40 hx=1,64 cx=1,64 -> y=1,10 hy=1,64 cy=1,64 | hx=>hy cx=>cy
input=1,1,40 h_0=2,1,64 c_0=2,1,64 -> output=1,1,64 h_n=2,1,64 c_n=2,1,64 | h_0=>h_n c_0=>c_n
obs=1,1,150 hidden_states=1,1 cell_states=1,1 -> output=1,1,2 state_out=1,1 cell_out=1,1 | hidden_states=>state_out cell_states=>cell_out
x=1,40 hidden_in=1,64 cell_in=1,64 -> y=1,10 hidden_out=1,64 cell_out=1,64 | hidden_in=>hidden_out cell_in=>cell_out
x=1,40 hidden_state=1,64 cell_state=1,64 -> y=1,10 new_hidden=1,64 new_cell=1,64 | hidden_state=>new_hidden cell_state=>new_cell
x=1,40 lstm_h=1,64 lstm_c=1,64 -> y=1,10 lstm_h_out=1,64 lstm_c_out=1,64 | lstm_h=>lstm_h_out lstm_c=>lstm_c_out
x=1,40 lstm_0_h=1,64 lstm_0_c=1,64 lstm_1_h=1,64 lstm_1_c=1,64 -> y=1,10 lstm_0_h_n=1,64 lstm_0_c_n=1,64 lstm_1_h_n=1,64 lstm_1_c_n=1,64 | lstm_0_h=>lstm_0_h_n lstm_0_c=>lstm_0_c_n lstm_1_h=>lstm_1_h_n lstm_1_c=>lstm_1_c_n
x=1,40 h0=1,64 h1=1,64 -> y=1,10 h0_out=1,64 h1_out=1,64 | h0=>h0_out h1=>h1_out
x=1,40 state_0=1,64 state_1=1,64 -> y=1,10 new_state_1=1,64 new_state_0=1,64 | state_0=>new_state_0 state_1=>new_state_1
x=1,40 state_0=1,64 state_1=1,64 -> y=1,10 state_out_1=1,64 state_out_2=1,64 | state_0=>state_out_1 state_1=>state_out_2
x=1,40 h_1=1,64 h_2=1,64 h_3=1,64 -> y=1,10 h_out_0=1,64 h_out_1=1,64 h_out_2=1,64 | h_1=>h_out_0 h_2=>h_out_1 h_3=>h_out_2
x=1,40 hidden.0=1,64 hidden.1=1,64 -> y=1,10 hidden.0_new=1,64 hidden.1_new=1,64 | hidden.0=>hidden.0_new hidden.1=>hidden.1_new
x=1,40 fwd_h_in=1,64 bwd_h_in=1,64 -> y=1,10 bwd_h_out=1,64 fwd_h_out=1,64 | fwd_h_in=>fwd_h_out bwd_h_in=>bwd_h_out
x=1,40 states_0_in=1,64 states_1_in=1,3,8 -> y=1,10 states_0_out=1,64 states_1_out=1,3,8 | states_0_in=>states_0_out states_1_in=>states_1_out
x=1,40 idx=1@i64 c_states=1,64 -> logits=1,10 new_states=1,64 | c_states=>new_states
"""

SPEECH = """
mix=1,257,1,2 conv_cache=2,1,16,16,33 tra_cache=2,3,1,1,16 inter_cache=2,1,33,16 -> enh=1,257,1,2 conv_cache_out=2,1,16,16,33 tra_cache_out=2,3,1,1,16 inter_cache_out=2,1,33,16 | conv_cache=>conv_cache_out tra_cache=>tra_cache_out inter_cache=>inter_cache_out
mix=1,257,1,2 cache=1,4,33,2 -> mix_out=1,257,1,2 cache_out=1,4,33,2 | cache=>cache_out
mix_in=1,257,1,2 cache_in=1,257,1,2 -> mix_out=1,257,1,2 cache_out=1,257,1,2 | cache_in=>cache_out
audio_in=1,480 state_in=1,480 -> audio_out=1,480 state_out=1,480 | state_in=>state_out
noisy=1,257,1,2 h_gru=1,257,1,2 -> denoised=1,257,1,2 h_gru_out=1,257,1,2 | h_gru=>h_gru_out
input_frame=480 states=45304 atten_lim_db= -> enhanced_audio_frame=480 new_states=45304 lsnr=1 | states=>new_states
spec=1,1,1,481,2 feat_erb=1,1,1,32 erb_ctx=1,1,2,32 enc_h0=1,1,256 -> spec_out=1,1,1,481,2 erb_ctx_out=1,1,2,32 enc_h0_out=1,1,256 | erb_ctx=>erb_ctx_out enc_h0=>enc_h0_out
input=1,512 sr=@i64 h=2,1,64 c=2,1,64 -> output=1,1 hn=2,1,64 cn=2,1,64 | h=>hn c=>cn
input=B,T state=2,B,128 sr=@i64 -> output=B,1 stateN=2,B,128 | state=>stateN
input=1,512 sr=@i64 state=2,1,128 context=1,64 -> output=1,1 stateN=2,1,128 context_out=1,64 | state=>stateN context=>context_out
main_input=1,1,42 vad_gru_prev_state=1,24 noise_gru_prev_state=1,48 -> denoise_output=1,1,22 vad_out=1,1 vad_gru_state=1,24 noise_gru_state=1,48 | vad_gru_prev_state=>vad_gru_state noise_gru_prev_state=>noise_gru_state
x=1,45,80 x_lens=1@i64 cached_len_0=2,1@i64 cached_avg_0=2,1,384 cached_key_0=2,64,1,192 cached_val_0=2,64,1,96 cached_conv1_0=2,1,384,30 cached_conv2_0=2,1,384,30 -> encoder_out=1,16,512 encoder_out_lens=1@i64 new_cached_len_0=2,1@i64 new_cached_avg_0=2,1,384 new_cached_key_0=2,64,1,192 new_cached_val_0=2,64,1,96 new_cached_conv1_0=2,1,384,30 new_cached_conv2_0=2,1,384,30 | cached_len_0=>new_cached_len_0 cached_avg_0=>new_cached_avg_0 cached_key_0=>new_cached_key_0 cached_val_0=>new_cached_val_0 cached_conv1_0=>new_cached_conv1_0 cached_conv2_0=>new_cached_conv2_0
x=N,45,80 cached_key_0=128,N,128 cached_key_1=128,N,128 embed_states=N,128,3,19 processed_lens=N@i64 -> log_probs=N,16,500 new_cached_key_0=128,N,128 new_cached_key_1=128,N,128 new_embed_states=N,128,3,19 new_processed_lens=N@i64 | cached_key_0=>new_cached_key_0 cached_key_1=>new_cached_key_1 embed_states=>new_embed_states processed_lens=>new_processed_lens
x=N,9,80 h0=12,N,512 c0=12,N,1024 -> encoder_out=N,T,512 next_h0=12,N,512 next_c0=12,N,1024 | h0=>next_h0 c0=>next_c0
x=N,9,80 state0=12,N,512 state1=12,N,1024 -> encoder_out=N,T,512 new_state0=12,N,512 new_state1=12,N,1024 | state0=>new_state0 state1=>new_state1
audio_signal=1,80,T length=1@i64 cache_last_channel=1,17,70,512 cache_last_time=1,17,512,8 cache_last_channel_len=1@i64 -> outputs=1,512,T encoded_lengths=1@i64 cache_last_channel_next=1,17,70,512 cache_last_time_next=1,17,512,8 cache_last_channel_next_len=1@i64 | cache_last_channel=>cache_last_channel_next cache_last_time=>cache_last_time_next cache_last_channel_len=>cache_last_channel_next_len
encoder_outputs=1,512,T targets=1,1@i32 target_length=1@i32 input_states_1=1,1,640 input_states_2=1,1,640 -> outputs=1,T,1,1025 prednet_lengths=1@i32 output_states_1=1,1,640 output_states_2=1,1,640 | input_states_1=>output_states_1 input_states_2=>output_states_2
chunk=1,67,80 offset=@i64 required_cache_size=@i64 att_cache=12,4,T,128 cnn_cache=12,1,256,7 att_mask=1,1,T2@bool -> output=1,16,256 r_att_cache=12,4,T3,128 r_cnn_cache=12,1,256,7 | att_cache=>r_att_cache cnn_cache=>r_cnn_cache
speech=1,T,560 in_cache0=1,128,19,1 in_cache1=1,128,19,1 -> logits=1,T,248 out_cache0=1,128,19,1 out_cache1=1,128,19,1 | in_cache0=>out_cache0 in_cache1=>out_cache1
x=1,257 conv_cache=1,16,3 -> y=1,257 conv_cache_out=1,16,3 | conv_cache=>conv_cache_out
x=1,257 conv_buffer_0=1,16,3 conv_buffer_1=1,16,3 tconv_buffer_0=1,16,3 -> y=1,257 updated_conv_buffer_0=1,16,3 updated_conv_buffer_1=1,16,3 updated_tconv_buffer_0=1,16,3 | conv_buffer_0=>updated_conv_buffer_0 conv_buffer_1=>updated_conv_buffer_1 tconv_buffer_0=>updated_tconv_buffer_0
token=1,1@i64 hidden_in=2,1,320 -> embedding=1,1,320 hidden_out=2,1,320 | hidden_in=>hidden_out
y=1,1@i64 h_in=2,1,320 c_in=2,1,320 -> decoder_out=1,1,320 h_out=2,1,320 c_out=2,1,320 | h_in=>h_out c_in=>c_out
features=1,1,40 gru1_state=1,1,32 gru2_state=1,1,32 -> mask=1,1,40 gru1_state_out=1,1,32 gru2_state_out=1,1,32 | gru1_state=>gru1_state_out gru2_state=>gru2_state_out
mag=1,1,257 phase=1,1,257 lstm1_h=1,1,64 lstm1_c=1,1,64 -> mag_out=1,1,257 phase_out=1,1,257 lstm1_h_out=1,1,64 lstm1_c_out=1,1,64 | lstm1_h=>lstm1_h_out lstm1_c=>lstm1_c_out
src=1,3,H,W r1i=1,16,a,b r2i=1,20,c,d r3i=1,40,e,f r4i=1,64,g,h downsample_ratio=1 -> fgr=1,3,H,W pha=1,1,H,W r1o=1,16,a2,b2 r2o=1,20,c2,d2 r3o=1,40,e2,f2 r4o=1,64,g2,h2 | r1i=>r1o r2i=>r2o r3i=>r3o r4i=>r4o
obs_0=1,24 recurrent_in=1,1,128 action_masks=1,4 -> discrete_actions=1,4 recurrent_out=1,1,128 | recurrent_in=>recurrent_out
obs=1,24 state_in_0=1,1,64 state_in_1=1,1,64 seq_lens=1@i32 -> output=1,4 state_out_0=1,1,64 state_out_1=1,1,64 | state_in_0=>state_out_0 state_in_1=>state_out_1
obs=B,24 state_ins=B,64 seq_lens=B@i32 -> output=B,4 state_outs=B,64 | state_ins=>state_outs
"""

CACHES = """
input_ids=B,1@i64 attention_mask=B,T@i64 past_key_values.0.key=B,8,p,64 past_key_values.0.value=B,8,p,64 -> logits=B,1,500 present.0.key=B,8,q,64 present.0.value=B,8,q,64 | past_key_values.0.key=>present.0.key past_key_values.0.value=>present.0.value
input_ids=B,1@i64 past_key_values_0_key=B,8,p,64 past_key_values_0_value=B,8,p,64 past_key_values_1_key=B,8,p,64 past_key_values_1_value=B,8,p,64 -> logits=B,1,500 present_0_key=B,8,q,64 present_0_value=B,8,q,64 present_1_key=B,8,q,64 present_1_value=B,8,q,64 | past_key_values_0_key=>present_0_key past_key_values_0_value=>present_0_value past_key_values_1_key=>present_1_key past_key_values_1_value=>present_1_value
input_ids=B,1@i64 past_0=2,B,8,p,64 past_1=2,B,8,p,64 -> logits=B,1,500 present_0=2,B,8,q,64 present_1=2,B,8,q,64 | past_0=>present_0 past_1=>present_1
input_ids=B,1@i64 encoder_attention_mask=B,S@i64 past_key_values.0.decoder.key=B,8,p,64 past_key_values.0.decoder.value=B,8,p,64 past_key_values.0.encoder.key=B,8,s,64 past_key_values.0.encoder.value=B,8,s,64 -> logits=B,1,500 present.0.decoder.key=B,8,q,64 present.0.decoder.value=B,8,q,64 | past_key_values.0.decoder.key=>present.0.decoder.key past_key_values.0.decoder.value=>present.0.decoder.value
input_ids=B,1@i64 encoder_hidden_states=B,S,64 past_key_values.0.decoder.key=B,8,p,64 past_key_values.0.encoder.key=B,8,s,64 use_cache_branch=1@bool -> logits=B,1,500 present.0.decoder.key=B,8,q,64 present.0.encoder.key=B,8,s2,64 | past_key_values.0.decoder.key=>present.0.decoder.key past_key_values.0.encoder.key=>present.0.encoder.key
inputs_embeds=B,T,64 position_ids=B,T@i64 past_k=4,B,8,p,64 past_v=4,B,8,p,64 -> logits=B,T,500 new_k=4,B,8,q,64 new_v=4,B,8,q,64 | past_k=>new_k past_v=>new_v
token=1,1@i64 self_k=4,1,8,p,64 self_v=4,1,8,p,64 cross_k=4,1,8,s,64 cross_v=4,1,8,s,64 -> logits=1,500 new_self_k=4,1,8,q,64 new_self_v=4,1,8,q,64 | self_k=>new_self_k self_v=>new_self_v
token=1,1@i64 position=1@i64 kv_cache=2,4,p,64 -> logits=1,500 new_kv_cache=2,4,q,64 | kv_cache=>new_kv_cache
ids=1,1@i64 state=2,4,p past_len=@i64 -> logits=1,500 new_state=2,4,q | state=>new_state
input_ids=1,1@i64 past_conv.0=1,64,3 past_ssm.0=1,64,16 -> logits=1,500 present_conv.0=1,64,3 present_ssm.0=1,64,16 | past_conv.0=>present_conv.0 past_ssm.0=>present_ssm.0
hidden_states=1,1,64 attention_mask=1,T past_key_0=1,8,p,8 past_value_0=1,8,p,8 -> hidden_states_out=1,1,64 present_key_0=1,8,q,8 present_value_0=1,8,q,8 | past_key_0=>present_key_0 past_value_0=>present_value_0
x=1,1,64 k_cache=1,8,p,8 v_cache=1,8,p,8 -> y=1,1,64 k_cache_out=1,8,q,8 v_cache_out=1,8,q,8 | k_cache=>k_cache_out v_cache=>v_cache_out
frames=1,T,80 cache=1,16,80 -> logits=1,T,30 new_cache=1,16,80 | cache=>new_cache
latent=1,32 state_0=1,4,p,64 state_1=1@i64 state_2=1,64,6 -> out=1,1920 out_state_0=1,4,p,64 out_state_1=1@i64 out_state_2=1,64,6 | state_0=>out_state_0 state_1=>out_state_1 state_2=>out_state_2
x=1,4 pos=@i64 window=1,8,4 is_first=1@bool -> y=1,4 pos_next=@i64 window_next=1,8,4 is_first_next=1@bool | pos=>pos_next window=>window_next is_first=>is_first_next
x=n,2 count_in=1@i64 sum_in=n,2 -> y=n,2 count_out=1@i64 sum_out=n,2 | count_in=>count_out sum_in=>sum_out
frob_in=1,8 cache_in=1,8 -> frob_out=1,8 cache_out=1,8 | cache_in=>cache_out
u=1,2 x_prev=1,4 P_prev=1,4,4 -> y=1,2 x_next=1,4 P_next=1,4,4 | x_prev=>x_next P_prev=>P_next
"""

TRAPS = """
mix=1,257,1,2 -> enh=1,257,1,2 |
audio_in=1,480 -> audio_out=1,480 |
audio_in=1,480 sr=@i64 -> audio_out=1,480 vad=1,1 |
x=1,4 -> y=1,4 |
x=1,257,1,2 sr=@i64 -> y=1,257,1,2 vad=1,1 |
input=1,4 -> output=1,4 |
input_0=1,4 input_1=1,4 -> output_0=1,4 output_1=1,4 |
input_1=1,3,41 input_2=1,64 input_3=1,64 -> output_1=1,1,1 output_2=1,64 output_3=1,64 |
noisy=1,257,1,2 -> denoised=1,257,1,2 mask=1,257,1,2 |
x=N,T,80 x_lens=N@i64 -> y=N,T,80 y_lens=N@i64 |
mic=1,512 ref=1,512 -> out=1,512 echo=1,512 |
input_ids=1,T@i64 attention_mask=1,T@i64 -> last_hidden_state=1,T,64 hidden_states=1,T,64 |
inputs_embeds=1,T,64 encoder_hidden_states=1,T,64 -> logits=1,T,9 last_hidden_state=1,T,64 |
x=1,1,40 h_in=1,1,64 c_in=1,1,64 -> y=1,1,10 h_out=1,1,64 |
x=1,1,40 h_in=1,1,64 -> y=1,1,10 h_out=1,1,64 c_out=1,1,64 |
x=1,1,40 h0=1,1,64 cache=1,3,8 -> y=1,1,10 hn=1,1,64 |
x=1,40 state=1,64 -> y=1,10 state_a=1,64 state_b=1,64 |
x=1,40 state_a=1,64 state_b=1,64 -> y=1,10 state=1,64 |
x=1,40 state=1,64 -> y=1,10 state_out=1,64 new_state=1,64 |
x=1,40 h_in=1,64 -> y=1,10 c_out=1,64 |
x=1,40 enc_state=1,64 -> y=1,10 dec_state_out=1,64 |
x=1,40 h0=1,64 h1=1,64 -> y=1,10 hn=1,64 |
x=1,40 conv_cache=1,16,3 tra_cache=1,16,3 -> y=1,40 conv_cache_out=1,16,3 |
x=1,40 h=1,64 c=1,64 -> 85=1,10 91=1,64 93=1,64 |
h_in=1,64 -> h_out=1,64 |
h_in=1,64 -> y=1,10 h_out=1,64 |
x=1,64 h_in=1,64 -> h_out=1,64 |
a_in=1,8 b_in=1,8 -> a_out=1,8 b_out=1,8 |
state=1,8 -> action=1,4 state_value=1,1 |
x=1,40 speaker_embedding=1,256 -> y=1,40 embedding_out=1,256 |
x=1,40 goal=1,64 -> y=1,10 latent=1,64 |
x=1,40 h_in=1,4 -> y=1,10 h_out=1,5 |
x=1,40 h_in=1,4 -> y=1,10 h_out=1,4@i64 |
x=1,40 h_in=1,4 -> y=1,10 h_out=4 |
x=1,40 h_out=1,4 -> y=1,10 h_in=1,4 |
x=1,40 next_h=1,4 -> y=1,10 prev_h=1,4 |
feats=1,T,80 feat_lens=1@i64 prompt_mask=1,T@bool -> logits=1,T,9 out_lens=1@i64 out_mask=1,T@bool |
tokens=1,T@i64 token_type_ids=1,T@i64 -> labels=1,T@i64 scores=1,T |
x=1,40 y_prev=1,10 h=1,64 -> y=1,10 h_out=1,64 |
x=1,40 x_lens=1@i64 h=1,64 -> y=1,10 new_x_lens=1@i64 h_out=1,64 |
prev_tokens=1,1@i64 h=1,64 -> next_tokens=1,1@i64 h_out=1,64 |
in0=1,40 in1=1,64 -> out0=1,10 out1=1,64 |
input_1=1,4 input_2=1,4 -> activation=1,9 tf_op_layer_stack=1,4 |
input_1=1,257 input_2=1,64 -> Identity=1,257 Identity_1=1,3 |
x=1,40 s0=1,64 s1=1,64 -> y=1,10 n0=1,64 n1=1,64 |
x=1,40 h=1,64 -> y=1,10 h_out=1,64 h_out_2=1,64 |
input=1,40 onnx::LSTM_1=1,1,64 onnx::LSTM_2=1,1,64 -> output=1,10 112=1,1,64 113=1,1,64 |
prev_frame=1,3,8,8 frame=1,3,8,8 -> enhanced_frame=1,3,8,8 |
left_in=1,8 right_in=1,8 -> left_out=1,8 right_out=1,8 |
x=1,1,64 hx=1,1,64 -> 85=1,1,64 91=1,1,64 |
x=1,40 h_in=1,64 foo_cache=1,3,8 bar_cache=1,3,8 -> y=1,10 h_out=1,64 cache_a=1,3,8 cache_b=1,3,8 |
"""

BESIDE = """
x=1,1,40 h_in=1,1,64 -> y=1,1,10 h_out=1,1,64 hidden_states=1,1,64 | h_in=>h_out
x=1,T,40 h_in=1,1,64 -> y=1,T,10 h_out=1,1,64 last_hidden_state=1,T,64 | h_in=>h_out
x=1,1,40 h_in=1,1,64 -> y=1,1,10 h_out=1,1,64 cell_output=1,1,64 | h_in=>h_out
x=1,1,40 h_in=1,1,64 -> y=1,1,10 h_out=1,1,64 attention_weights=1,1,64 | h_in=>h_out
x=1,T,40 lengths=1@i64 mask=1,T@bool state=1,64 -> y=1,T,40 out_lengths=1@i64 out_mask=1,T@bool state_out=1,64 | state=>state_out
x=1,40 speaker_embedding=1,64 h=1,64 -> y=1,40 embedding=1,64 hn=1,64 | h=>hn
x=1,40 hx=1,64 -> 85=1,10 91=1,64 | hx=>91
serving_default_x:0=1,40 serving_default_state:0=1,64 -> StatefulPartitionedCall:0=1,10 StatefulPartitionedCall:1=1,64 | serving_default_state:0=>StatefulPartitionedCall:1
input_2=1,1,257 input_3=1,2,128,2 -> activation_2=1,1,257 tf_op_layer_stack_2=1,2,128,2 | input_3=>tf_op_layer_stack_2
input_4=1,1,512 input_5=1,2,128,2 -> conv1d_3=N,1,512 tf_op_layer_stack_5=N,2,128,2 | input_5=>tf_op_layer_stack_5
x=1,40 input_3=1,2,64 -> y=1,10 state_out=1,2,64 | input_3=>state_out
input_1=1,40 state_in=1,64 -> Identity=1,10 Identity_1=1,64 | state_in=>Identity_1
"""

MORE = """
x=1,40 h1=1,64 h2=1,32 -> y=1,10 h1n=1,64 h2n=1,32 | h1=>h1n h2=>h2n
x=1,40 hidden_state_0=1,64 hidden_state_1=1,64 -> y=1,10 new_hidden_state_0=1,64 new_hidden_state_1=1,64 | hidden_state_0=>new_hidden_state_0 hidden_state_1=>new_hidden_state_1
x=1,40 h_state=1,64 -> y=1,10 h_state_new=1,64 | h_state=>h_state_new
x=1,40 rnn_hxs=1,64 masks=1,1 -> value=1,1 action=1,1 rnn_hxs_out=1,64 | rnn_hxs=>rnn_hxs_out
x=1,40 rnn_hxs=1,64 -> value=1,1 action=1,1 rnn_hxs_next=1,64 | rnn_hxs=>rnn_hxs_next
frame=1,3,8,8 hidden=1,64,8,8 -> out=1,3,8,8 hidden_next=1,64,8,8 | hidden=>hidden_next
audio=1,512 encoder_cache=1,16,3 decoder_cache=1,16,3 -> audio_out=1,512 encoder_cache_out=1,16,3 decoder_cache_out=1,16,3 | encoder_cache=>encoder_cache_out decoder_cache=>decoder_cache_out
audio=1,512 enc_buf=1,16,3 dec_buf=1,16,3 out_buf=1,128 -> wav=1,512 new_enc_buf=1,16,3 new_dec_buf=1,16,3 new_out_buf=1,128 | enc_buf=>new_enc_buf dec_buf=>new_dec_buf out_buf=>new_out_buf
audio=1,512 enc_buf=1,16,3 dec_buf=1,16,3 out_buf=1,128 -> wav=1,512 enc_buf_out=1,16,3 dec_buf_out=1,16,3 out_buf_out=1,128 | enc_buf=>enc_buf_out dec_buf=>dec_buf_out out_buf=>out_buf_out
input=1,40 in_state=1,64 -> output=1,10 out_state=1,64 | in_state=>out_state
input=1,40 input_h=1,64 input_c=1,64 -> output=1,10 output_h=1,64 output_c=1,64 | input_h=>output_h input_c=>output_c
x=1,40 h_enc=1,64 h_dec=1,64 -> y=1,10 h_enc_out=1,64 h_dec_out=1,64 | h_enc=>h_enc_out h_dec=>h_dec_out
x=1,40 state_h=1,64 state_c=1,64 -> y=1,10 state_h_1=1,64 state_c_1=1,64 | state_h=>state_h_1 state_c=>state_c_1
x=1,40 state_h=1,64 state_c=1,64 -> y=1,10 out_h=1,64 out_c=1,64 | state_h=>out_h state_c=>out_c
x=1,40 h0=1,64 c0=1,64 -> y=1,10 h1=1,64 c1=1,64 | h0=>h1 c0=>c1
x=1,40 h_0=1,64 h_1=1,64 -> y=1,10 h_n_0=1,64 h_n_1=1,64 | h_0=>h_n_0 h_1=>h_n_1
x=1,40 lstm1_h0=1,64 lstm2_h0=1,64 -> y=1,10 lstm1_hn=1,64 lstm2_hn=1,64 | lstm1_h0=>lstm1_hn lstm2_h0=>lstm2_hn
x=1,40 h0_1=1,64 h0_2=1,64 -> y=1,10 hn_1=1,64 hn_2=1,64 | h0_1=>hn_1 h0_2=>hn_2
x=1,40 prev_hidden=1,64 prev_cell=1,64 -> y=1,10 hidden=1,64 cell=1,64 | prev_hidden=>hidden prev_cell=>cell
x=1,40 mem0=1,64 mem1=1,64 -> y=1,10 mem0_out=1,64 mem1_out=1,64 spikes=1,64 | mem0=>mem0_out mem1=>mem1_out
x=1,40 mem=1,64 syn=1,64 -> spk=1,64 mem_out=1,64 syn_out=1,64 | mem=>mem_out syn=>syn_out
x=1,40 mem=1,64 syn=1,64 -> spk=1,64 new_mem=1,64 new_syn=1,64 | mem=>new_mem syn=>new_syn
x=1,40 v=1,64 -> spk=1,64 v_next=1,64 | v=>v_next
enc=1,40 tok=1@i64 pred_state=1,64 -> logits=1,10 pred_state_new=1,64 | pred_state=>pred_state_new
wav=1,512 fsmn_cache0=1,8,3 fsmn_cache1=1,8,3 -> prob=1,1 fsmn_cache0_out=1,8,3 fsmn_cache1_out=1,8,3 | fsmn_cache0=>fsmn_cache0_out fsmn_cache1=>fsmn_cache1_out
x=1,40 cacheA=1,64 cacheB=1,64 -> y=1,10 cacheA_out=1,64 cacheB_out=1,64 | cacheA=>cacheA_out cacheB=>cacheB_out
x=1,40 prevState=1,64 -> y=1,10 nextState=1,64 | prevState=>nextState
x=1,40 inState0=1,64 inState1=1,64 -> y=1,10 outState0=1,64 outState1=1,64 | inState0=>outState0 inState1=>outState1
X=1,40 H=1,64 C=1,64 -> Y=1,10 H_OUT=1,64 C_OUT=1,64 | H=>H_OUT C=>C_OUT
INPUT=1,40 STATE_IN=1,64 -> OUTPUT=1,10 STATE_OUT=1,64 | STATE_IN=>STATE_OUT
x=1,40 state=1,64 step=@i64 -> y=1,10 state_o=1,64 step_o=@i64 | state=>state_o step=>step_o
x=1,40 ring=1,64 ptr=1@i64 -> y=1,10 ring_out=1,64 ptr_out=1@i64 | ring=>ring_out ptr=>ptr_out
x=1,40 hist=1,3,40 -> y=1,10 hist_new=1,3,40 | hist=>hist_new
x=1,40 left_context=1,3,40 -> y=1,10 new_left_context=1,3,40 | left_context=>new_left_context
x=1,40 conv_state=1,64,3 ssm_state=1,64,16 -> y=1,10 conv_state_out=1,64,3 ssm_state_out=1,64,16 | conv_state=>conv_state_out ssm_state=>ssm_state_out
x=1,1,8 att_xx=4,8 aa=4,8 bb=4,8 pp=4,8 ffn_xx=4,8 -> y=1,10 att_xx_out=4,8 aa_out=4,8 bb_out=4,8 pp_out=4,8 ffn_xx_out=4,8 | att_xx=>att_xx_out aa=>aa_out bb=>bb_out pp=>pp_out ffn_xx=>ffn_xx_out
x=1,40 tcn_cache=1,64 -> y=1,40 tcn_cache_new=1,64 mask=1,40 | tcn_cache=>tcn_cache_new
x=1,40 hidden=1,64 -> output=1,10 hidden_output=1,64 | hidden=>hidden_output
x=1,40 initial_state_h=1,64 initial_state_c=1,64 -> y=1,10 final_state_h=1,64 final_state_c=1,64 | initial_state_h=>final_state_h initial_state_c=>final_state_c
x=1,40 h=1,64 -> y=1,10 h_final=1,64 | h=>h_final
x=1,40 lstm_states.0=1,64 lstm_states.1=1,64 -> y=1,10 new_lstm_states.0=1,64 new_lstm_states.1=1,64 | lstm_states.0=>new_lstm_states.0 lstm_states.1=>new_lstm_states.1
x=1,257,2 sc=1,257,2 -> x_enh=1,257,2 sc_out=1,257,2 | sc=>sc_out
stft_in=1,257,2 gru_cache_in=1,257,2 -> stft_out=1,257,2 gru_cache_out=1,257,2 | gru_cache_in=>gru_cache_out
x=1,40 past_hidden=1,64 -> y=1,10 present_hidden=1,64 | past_hidden=>present_hidden
x=1,40 decoder_hidden=1,64 encoder_outputs=1,T,64 -> output=1,10 decoder_hidden_out=1,64 attn_weights=1,T | decoder_hidden=>decoder_hidden_out
x=1,40 decoder_input=1,1 hidden=1,64 encoder_outputs=1,T,64 -> output=1,10 new_hidden=1,64 attention=1,T | hidden=>new_hidden
x=1,40 state=1,64 reset=1@bool -> y=1,10 new_state=1,64 | state=>new_state
x=1,40 cache_in_0=1,64 cache_in_1=1,64 cache_in_2=1,3 -> y=1,10 cache_out_0=1,64 cache_out_1=1,64 cache_out_2=1,3 | cache_in_0=>cache_out_0 cache_in_1=>cache_out_1 cache_in_2=>cache_out_2
x=1,40 s0=1,64 s1=1,64 -> y=1,10 s0_new=1,64 s1_new=1,64 | s0=>s0_new s1=>s1_new
x=1,40 h_l0=1,64 h_l1=1,64 -> y=1,10 h_l0_n=1,64 h_l1_n=1,64 | h_l0=>h_l0_n h_l1=>h_l1_n
input=1,1,257 hidden_f=1,64 hidden_s=1,64 -> output=1,1,257 hidden_f_out=1,64 hidden_s_out=1,64 | hidden_f=>hidden_f_out hidden_s=>hidden_s_out
model_input=1,40 model_state=1,64 -> model_output=1,10 model_state_out=1,64 | model_state=>model_state_out
image=1,3,8,8 rec1=1,4 rec2=1,4 -> matte=1,1,8,8 rec1_out=1,4 rec2_out=1,4 | rec1=>rec1_out rec2=>rec2_out
x=1,40 hs=1,64 cs=1,64 -> y=1,10 hs_out=1,64 cs_out=1,64 | hs=>hs_out cs=>cs_out
x=1,40 past_state=1,64 -> y=1,10 state=1,64 | past_state=>state
x=1,40 state=1,64 -> y=1,10 output_state=1,64 | state=>output_state
x=1,40 cur_h=1,64 -> y=1,10 new_h=1,64 | cur_h=>new_h
x=1,40 state=1,64 -> y=1,10 current_state=1,64 | state=>current_state
x=1,40 h=1,64 -> y=1,10 hidden=1,64 | h=>hidden
x=1,40 h=1,64 -> y=1,10 state=1,64 | h=>state
x=1,40 h01=1,64 h02=1,64 -> y=1,10 hn1=1,64 hn2=1,64 | h01=>hn1 h02=>hn2
"""


def decoder(layers: int) -> Signature:
    """A decoder with as many caches as large ones have."""
    caches = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    before = " ".join(f"past_key_values.{name}=B,8,p,64" for name in caches)
    after = " ".join(f"present.{name}=B,8,q,64" for name in caches)
    pairs = " ".join(f"past_key_values.{name}=>present.{name}" for name in caches)
    return signature("large", f"input_ids=B,1@i64 {before} -> logits=B,1,500 {after} | {pairs}")


def signatures() -> list[Signature]:
    return [
        *_each("marks", ONE, MARKED),
        *_each("marks and a signal of that shape", SAME, MARKED),
        *_rows("several states", TWO),
        *_rows("speech and agents", SPEECH),
        *_rows("caches and counters", CACHES),
        *_rows("no states, or not sure", TRAPS),
        *_rows("beside other things", BESIDE),
        *_rows("more names", MORE),
    ]
