"""futures.py: a pool of Python processes behind concurrent.futures. The pool spawns its workers (MPI_Comm_spawn), which run this file too,
and has a thread for each worker. No Python package is needed: ctypes calls the library. The constants are those of the MPI standard ABI,
the same for every library that implements the ABI.

    LD_LIBRARY_PATH=build/lib build/bin/mpiexec -n 1 python3 examples/futures.py

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import ctypes
import pickle
import queue
import sys
import threading

# Constants of the standard ABI.
COMM_NULL, COMM_SELF, INFO_NULL, BYTE = 0x100, 0x102, 0x130, 0x247
ANY_TAG, THREAD_MULTIPLE = -2, 4096
TASK, RESULT, HOME = range(3)


class Status(ctypes.Structure):
    _fields_ = [("source", ctypes.c_int), ("tag", ctypes.c_int), ("error", ctypes.c_int), ("internal", ctypes.c_int * 5)]


library = ctypes.CDLL("libmpi_abi.so.1")  # ctypes lets other threads run while a call waits
handle = ctypes.c_void_p


def call_mpi(name, *arguments):
    """Calls an MPI function. An error ends the job, as is MPI's default."""
    getattr(library, "MPI_" + name)(*arguments)


def send_object(what, to, tag, comm):
    data = pickle.dumps(what)
    call_mpi("Send", data, len(data), handle(BYTE), to, tag, comm)


def receive_object(source, comm):
    """Returns the received object and its tag. MPI_Mprobe prevents another thread from receiving the message before MPI_Mrecv."""
    message, status, size = handle(), Status(), ctypes.c_int()
    call_mpi("Mprobe", source, ANY_TAG, comm, ctypes.byref(message), ctypes.byref(status))
    call_mpi("Get_count", ctypes.byref(status), handle(BYTE), ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    call_mpi("Mrecv", data, size, handle(BYTE), ctypes.byref(message), None)
    return pickle.loads(data.raw), status.tag


class Pool(concurrent.futures.Executor):
    def __init__(self, workers):
        self.tasks = queue.SimpleQueue()
        self.crews, self.threads = [], []
        self.add_workers(workers)

    def add_workers(self, workers):
        """Spawns `workers` more workers. The workers of one call share a communicator, so they end together."""
        comm = handle()
        argv = (ctypes.c_char_p * 2)(__file__.encode(), None)
        call_mpi("Comm_spawn", sys.executable.encode(), argv, workers, handle(INFO_NULL), 0, handle(COMM_SELF), ctypes.byref(comm), None)
        self.crews.append(comm)
        for worker in range(workers):
            self.threads.append(threading.Thread(target=self.serve_worker, args=(comm, worker)))
            self.threads[-1].start()

    def serve_worker(self, comm, worker):
        """Runs in the thread of a worker: sends tasks to the worker, one after the other, and stores the results."""
        while (task := self.tasks.get()) is not None:
            future, *call = task
            if not future.set_running_or_notify_cancel():
                continue
            send_object(call, worker, TASK, comm)
            (good, value), _ = receive_object(worker, comm)
            if good:
                future.set_result(value)
            else:
                future.set_exception(value)
        send_object(None, worker, HOME, comm)

    def submit(self, function, /, *arguments, **named):
        future = concurrent.futures.Future()
        self.tasks.put((future, function, arguments, named))
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        for _ in self.threads:
            self.tasks.put(None)  # after all tasks: ends a thread
        for thread in self.threads:
            thread.join()
        for comm in self.crews:
            call_mpi("Comm_disconnect", ctypes.byref(comm))
        self.crews, self.threads = [], []


def run_worker(pool):
    while True:
        call, tag = receive_object(0, pool)
        if tag == HOME:
            break
        function, arguments, named = call
        try:
            answer = True, function(*arguments, **named)
        except Exception as error:  # the exception is raised again in the process that submitted the task
            answer = False, error
        send_object(answer, 0, RESULT, pool)
    call_mpi("Comm_disconnect", ctypes.byref(pool))


def count_primes(first, end):
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(first, 2), end))


def main():
    with Pool(2) as pool:
        print("primes below 20000:", sum(pool.map(count_primes, range(0, 20000, 1000), range(1000, 21000, 1000))))
        try:
            pool.submit(count_primes, 0, "many").result()
        except TypeError as error:
            print("a worker's exception:", error)
        pool.add_workers(2)
        print("with four workers:", sum(pool.map(count_primes, range(0, 20000, 1000), range(1000, 21000, 1000))))


if __name__ == "__main__":
    parent, given = handle(), ctypes.c_int()
    call_mpi("Init_thread", None, None, THREAD_MULTIPLE, ctypes.byref(given))
    call_mpi("Comm_get_parent", ctypes.byref(parent))
    if parent.value == COMM_NULL:
        main()
    else:
        run_worker(parent)
    call_mpi("Finalize")
