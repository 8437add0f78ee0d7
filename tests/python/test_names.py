# SPDX-License-Identifier: Apache-2.0
"""Every name is there that the interfaces have."""

import inspect
import os
import re

import memfabric_hybrid
import mf_adapter
import mf_smem
import pytest
import shmem
import shmem.core
from memspan import _core, mooncake
from memspan.fabric import bm, common, engine, shm

INCLUDE = os.path.join(os.path.dirname(__file__), "..", "..", "include")

FIRST_GENERATION = """
    shmem_init shmem_finalize shmem_set_attributes shmem_init_status shmem_set_data_op_engine_type
    shmem_set_timeout register_decrypt_handler shmem_malloc shmem_calloc shmem_align shmem_free
    shmem_ptr get_my_pe get_pe_count team_my_pe team_n_pes get_team_my_pe get_team_pe_count
    mte_set_ub_params team_split_strided team_split_2d team_translate_pe team_destroy
    shmem_team_get_config shmem_putmem shmem_getmem shmem_putmem_nbi shmem_getmem_nbi
    shmem_putmem_signal shmem_putmem_signal_nbi shmem_info_get_version shmem_info_get_name
    get_ffts_config shmem_global_exit set_conf_store_tls OpEngineType OptionalAttr InitAttr
    TeamConfig InitStatus
""".split()

OTHER_SPELLINGS = """
    shmem_finialize my_pe pe_count shmem_get_unique_id shmem_init_using_unique_id set_log_level
    set_extern_logger set_conf_store_tls_key aclshmem_init aclshmem_finalize aclshmem_malloc
    aclshmem_calloc aclshmem_align aclshmem_free aclshmem_ptr aclshmem_putmem aclshmem_getmem
    aclshmem_team_get_config aclshmem_global_exit aclshmem_info_get_version
    aclshmem_info_get_name aclshmemx_init_status aclshmemx_finalize aclshmemx_get_heap_base
    aclshmemx_putmem_signal aclshmemx_putmem_signal_nbi aclshmem_signal_wait_until
    aclshmemx_putmem_on_stream aclshmemx_getmem_on_stream aclshmemx_signal_op_on_stream
    aclshmemx_signal_wait_until_on_stream aclshmemx_quiet_on_stream
    UniqueId SignalOp CmpOp MemType tensor
""".split()

TYPES = "float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 char".split()
WORDS = "int32 int64 uint32 uint64".split()
WAITS = [
    kind + form
    for kind in ("wait_until", "test")
    for form in ("", "_all", "_any", "_some", "_all_vector", "_any_vector", "_some_vector")
]


@pytest.mark.parametrize("name", FIRST_GENERATION + OTHER_SPELLINGS)
def test_shmem_has(name):
    assert getattr(shmem, name).__doc__
    assert name in shmem.__all__


@pytest.mark.parametrize("prefix", ["shmem_", "aclshmem_"])
def test_shmem_has_each_type(prefix):
    for name in TYPES:
        for form in ("p", "g", "put", "get", "iput", "iget"):
            assert callable(getattr(shmem, f"{prefix}{name}_{form}"))
    for name in WORDS:
        for form in WAITS:
            assert callable(getattr(shmem, f"{prefix}{name}_{form}"))
    for bits in (8, 16, 32, 64, 128):
        for form in ("put{}", "get{}", "iput{}", "iget{}", "put{}_nbi", "get{}_nbi"):
            assert callable(getattr(shmem, prefix + form.format(bits)))


def test_shmem_has_the_waits_of_the_later_generation():
    for name in (*WORDS, "char", "float", "int8", "int16", "uint8", "uint16"):
        for form in ("wait", *WAITS):
            assert getattr(shmem._pyshmem, f"aclshmem_{name}_{form}").__doc__


# What stands for each C function of MemFabric: the public one, by module.
PYTHON_OF = {
    "smem_init": (common, "initialize"),
    "smem_uninit": (common, "uninitialize"),
    "smem_create_config_store": (common, "create_config_store"),
    "smem_destroy_config_store": (common, "destroy_config_store"),
    "smem_set_conf_store_tls": (common, "set_conf_store_tls"),
    "smem_set_config_store_tls_key": (common, "set_conf_store_tls_key"),
    "smem_set_extern_logger": (common, "set_extern_logger"),
    "smem_set_log_level": (common, "set_log_level"),
    "smem_get_last_err_msg": (common, "get_last_err_msg"),
    "smem_get_and_clear_last_err_msg": (common, "get_and_clear_last_err_msg"),
    "smem_get_last_err_code": (common, "get_last_err_code"),
    "smem_get_error_string": (common, "get_error_string"),
    "smem_bm_config_init": (bm, "BmConfig"),
    "smem_bm_init": (bm, "initialize"),
    "smem_bm_uninit": (bm, "uninitialize"),
    "smem_bm_get_rank_id": (bm, "bm_rank_id"),
    "smem_bm_create": (bm, "create"),
    "smem_bm_create2": (bm, "create2"),
    "smem_bm_destroy": (bm.BigMemory, "destroy"),
    "smem_bm_join": (bm.BigMemory, "join"),
    "smem_bm_leave": (bm.BigMemory, "leave"),
    "smem_bm_get_local_mem_size_by_mem_type": (bm.BigMemory, "local_mem_size"),
    "smem_bm_ptr_by_mem_type": (bm.BigMemory, "peer_rank_ptr"),
    "smem_bm_get_rank_id_by_gva": (bm.BigMemory, "get_rank_id_by_gva"),
    "smem_bm_copy": (bm.BigMemory, "copy_data"),
    "smem_bm_copy_batch": (bm.BigMemory, "copy_data_batch"),
    "smem_bm_copy_batch_partial_succeed": (bm.BigMemory, "copy_data_batch_partial_succeed"),
    "smem_bm_wait": (bm.BigMemory, "wait"),
    "smem_bm_register_user_mem": (bm.BigMemory, "register"),
    "smem_bm_unregister_user_mem": (bm.BigMemory, "unregister"),
    "smem_shm_config_init": (shm, "ShmConfig"),
    "smem_shm_init": (shm, "initialize"),
    "smem_shm_uninit": (shm, "uninitialize"),
    "smem_shm_query_support_data_operation": (shm.ShareMemory, "query_support_data_operation"),
    "smem_shm_create": (shm, "create"),
    "smem_shm_destroy": (shm.ShareMemory, "destroy"),
    "smem_shm_set_extra_context": (shm.ShareMemory, "set_context"),
    "smem_shm_get_extra_context": (shm.ShareMemory, "get_context"),
    "smem_shm_get_global_rank": (shm.ShareMemory, "local_rank"),
    "smem_shm_get_global_rank_size": (shm.ShareMemory, "rank_size"),
    "smem_shm_control_barrier": (shm.ShareMemory, "barrier"),
    "smem_shm_control_allgather": (shm.ShareMemory, "all_gather"),
    "smem_shm_subgroup_barrier": (shm.ShareMemory, "subgroup_barrier"),
    "smem_shm_subgroup_allgather": (shm.ShareMemory, "subgroup_all_gather"),
    "smem_shm_topology_can_reach": (shm.ShareMemory, "topology_can_reach"),
    "smem_shm_atomic_alloc_value": (shm.ShareMemory, "atomic_alloc_value"),
    "smem_shm_atomic_release_value": (shm.ShareMemory, "atomic_release_value"),
    "smem_shm_register_exit": (shm.ShareMemory, "register_exit"),
    "smem_shm_global_exit": (shm.ShareMemory, "global_exit"),
    "smem_trans_config_init": (engine.TransferEngine, "initialize"),
    "smem_trans_init": (engine.TransferEngine, "initialize"),
    "smem_trans_uninit": (engine.TransferEngine, "unInitialize"),
    "smem_trans_create": (engine.TransferEngine, "initialize"),
    "smem_trans_destroy": (engine.TransferEngine, "destroy"),
    "smem_trans_malloc": (engine.TransferEngine, "trans_malloc"),
    "smem_trans_free": (engine.TransferEngine, "trans_free"),
    "smem_trans_register_mem": (engine.TransferEngine, "register_memory"),
    "smem_trans_batch_register_mem": (engine.TransferEngine, "batch_register_memory"),
    "smem_trans_deregister_mem": (engine.TransferEngine, "unregister_memory"),
    "smem_trans_write": (engine.TransferEngine, "transfer_sync_write"),
    "smem_trans_read": (engine.TransferEngine, "transfer_sync_read"),
    "smem_trans_batch_write": (engine.TransferEngine, "batch_transfer_sync_write"),
    "smem_trans_batch_read": (engine.TransferEngine, "batch_transfer_sync_read"),
    "smem_trans_write_submit": (engine.TransferEngine, "transfer_async_write_submit"),
    "smem_trans_read_submit": (engine.TransferEngine, "transfer_async_read_submit"),
    "smem_trans_batch_write_submit": (engine.TransferEngine, "batch_transfer_async_write_submit"),
    "smem_trans_batch_read_submit": (engine.TransferEngine, "batch_transfer_async_read_submit"),
    "smem_trans_set_peer_down_callback": (engine.TransferEngine, "set_peer_down_callback"),
    "smem_trans_check_flags": (engine.TransferEngine, "transfer_sync_write"),
}


def test_every_function_of_memfabric_has_a_name_here():
    declared = set()
    for header in ("smem", "smem_bm", "smem_shm", "smem_trans"):
        with open(os.path.join(INCLUDE, "smem", "host", header + ".h"), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        declared |= set(re.findall(r"\b(smem_\w+)\(", text))
    assert declared == set(PYTHON_OF)
    for owner, name in PYTHON_OF.values():
        assert inspect.getdoc(getattr(owner, name))


def test_messages_name_what_python_calls():
    core = os.path.join(os.path.dirname(__file__), "..", "..", "python", "core", "names_in_python.cc")
    with open(core, encoding="utf-8") as file:
        known = dict(re.findall(r'\{"(\w+)", "([\w.]+)"\}', file.read()))
    for function, (owner, name) in PYTHON_OF.items():
        if re.search("_config_init$|_get_(last|and|error)|check_flags", function):
            continue  # these leave no message
        wanted = name if owner is common else f"{owner.__name__.split('.')[-1]}.{name}"
        assert known.get(function, function.removeprefix("smem_")) == wanted


def test_a_message_begins_with_the_function_that_was_called():
    common.get_and_clear_last_err_msg()
    with pytest.raises(RuntimeError, match="bm.create: .*not initialized"):
        bm.create(1, 4096, 0)
    assert bm.initialize("nowhere", 2, 0, bm.BmConfig()) != 0
    assert common.get_last_err_msg().startswith("bm.initialize: ")
    assert common.create_config_store("nowhere") != 0
    assert common.get_last_err_msg().startswith("create_config_store: ")
    assert engine.TransferEngine().initialize("nowhere", "127.0.0.1:7000", "Prefill", 0) != 0
    assert common.get_last_err_msg().startswith("TransferEngine.initialize: ")


def test_the_packages_have_what_theirs_had():
    for name in """TransferEngine TransferOpcode create_config_store bm shm initialize uninitialize
            set_log_level set_extern_logger get_last_err_msg get_and_clear_last_err_msg
            set_conf_store_tls set_conf_store_tls_key get_include_path get_lib_path""".split():
        assert name in memfabric_hybrid.__all__ and hasattr(memfabric_hybrid, name)
    for name in """bm shm initialize uninitialize set_log_level set_extern_logger get_last_err_msg
            get_and_clear_last_err_msg set_conf_store_tls set_conf_store_tls_key""".split():
        assert name in mf_smem.__all__ and hasattr(mf_smem, name)
    for name in "TransferEngine set_log_level create_config_store set_conf_store_tls Read SDMA".split():
        assert name in mf_adapter.__all__ and hasattr(mf_adapter, name)
    assert mf_adapter.TransferEngine.TransDataOpType.DEVICE_RDMA == 8
    assert mf_adapter.TransferEngine.TransferOpcode.Write == 1
    # The values are the modules', too.
    for module in (memfabric_hybrid, mf_adapter, engine):
        for owner in (engine.TransferOpcode, engine.TransDataOpType):
            for value in owner:
                assert getattr(module, value.name) is value and value.name in module.__all__
    assert mooncake.Write is mf_adapter.Write


def test_keywords_are_those_of_the_interface():
    wanted = {
        engine.TransferEngine.initialize: "store_url session_id role device_id data_op_type "
        "store_server_role",
        engine.TransferEngine.transfer_sync_write: "dest_session buffer peer_buffer length flags",
        engine.TransferEngine.batch_transfer_sync_read: "dest_session buffers peer_buffers lengths "
        "flags",
        engine.TransferEngine.batch_transfer_async_write_submit: "dest_session buffers peer_buffers "
        "lengths stream flags",
        engine.TransferEngine.register_memory: "buffer_addr capacity adopt",  # the last is ours
        engine.TransferEngine.batch_register_memory: "buffer_addrs capacities adopt",
        bm.initialize: "store_url world_size device_id config",
        bm.create: "id local_dram_size local_hbm_size data_op_type flags",
        bm.BigMemory.copy_data: "src_ptr dst_ptr size type flags stream",
        bm.BigMemory.copy_data_batch: "src_addrs dst_addrs sizes count type flags stream",
        bm.BigMemory.peer_rank_ptr: "peer_rank mem_type",
        shm.initialize: "store_url world_size rank_id device_id config",
        shm.create: "id rank_size rank_id local_mem_size data_op_type flags",
        shmem.shmem_init: "mype npes mem_size attributes",
        shmem.get_team_my_pe: "team",
        shmem.get_team_pe_count: "team",
        shmem.shmem_set_attributes: "my_rank n_ranks local_mem_size ip_port attributes",
        shmem.team_split_strided: "parent start stride size",
        shmem.team_translate_pe: "src_team src_pe dest_team",
        mooncake.TransferEngine.initialize: "local_hostname metadata_server protocol device_name",
    }
    for function, names in wanted.items():
        parameters = [name for name in inspect.signature(function).parameters if name != "self"]
        assert parameters == names.split()
    # Of the compiled ones the text says it.
    for function, names in {
        shmem.shmem_putmem: "dst src elem_size pe",
        shmem.shmem_putmem_signal: "dst src elem_size sig signal sig_op pe",
        shmem.shmem_int32_p: "dst value pe",
        shmem.shmem_int32_g: "src pe",
    }.items():
        said = re.findall(r"(\w+):", function.__doc__.splitlines()[0])
        assert said == names.split()


def test_help_is_readable():
    for module in (shmem, mf_smem, mf_smem.bm, mf_smem.shm, shmem.moves, shmem.core):
        assert len(inspect.getdoc(module)) > 40
    for owner in (engine.TransferEngine, engine.TransferRequest, bm.BigMemory, shm.ShareMemory):
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{owner.__name__}.{name} says nothing"


def test_versions_agree():
    assert shmem.__version__ == _core.__version__ == mf_smem.__version__
